# The simulator must run a program without the compiler: fails when the link closure of openrknn_sim, which is all that
# sim_test links, holds any other folder.
function(openrknn_link_closure target result)
  set(seen ${${result}})
  list(APPEND seen ${target})
  get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
  foreach(library IN LISTS libraries)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" library "${library}")
    if(library MATCHES "^openrknn_" AND NOT library IN_LIST seen)
      openrknn_link_closure(${library} seen)
    endif()
  endforeach()
  set(${result} ${seen} PARENT_SCOPE)
endfunction()

set(closure "")
openrknn_link_closure(openrknn_sim closure)
list(REMOVE_DUPLICATES closure)
set(unwanted ${closure})
list(REMOVE_ITEM unwanted openrknn_sim openrknn_model openrknn_kernels openrknn_core openrknn_base openrknn_flags)
add_test(NAME sim_links_no_compiler COMMAND ${CMAKE_COMMAND} -E compare_files --ignore-eol
         ${CMAKE_CURRENT_BINARY_DIR}/sim_links_unwanted.txt ${CMAKE_CURRENT_BINARY_DIR}/sim_links_none.txt)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/sim_links_unwanted.txt "${unwanted}\n")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/sim_links_none.txt "\n")
