# openrknn_library(NAME [DEPENDS lib...] [PRIVATE lib...]): one static library per folder of src, named openrknn_NAME,
# made of all .cpp files in the folder. DEPENDS are folders of src; PRIVATE are third-party targets.
# The link list is the layer rule: what is not listed cannot be linked (tools/check_layers.py checks the includes).
function(openrknn_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;PRIVATE;PUBLIC" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  set(target openrknn_${name})
  if(NOT sources)  # a folder of headers only
    set(sources ${PROJECT_BINARY_DIR}/empty.cpp)
    file(CONFIGURE OUTPUT ${sources} CONTENT "" @ONLY)
  endif()
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/src)
  set(deps)
  foreach(d IN LISTS ARG_DEPENDS)
    list(APPEND deps openrknn_${d})
  endforeach()
  target_link_libraries(${target} PUBLIC openrknn_flags ${deps} ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

# openrknn_family_list(NAME FUNCTION_PREFIX): writes <build>/src/<NAME>_families.inc, a list of
# FAMILY(stem) lines, one per .cpp of the folder whose stem does not start with "registry". An operator family is
# added by adding its file; no list is edited.
function(openrknn_family_list name)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  set(text "// Generated from the files of src/${name}; do not edit.\n")
  foreach(f IN LISTS files)
    get_filename_component(stem ${f} NAME_WE)
    if(NOT stem MATCHES "^(registry|support_)")
      string(APPEND text "FAMILY(${stem})\n")
    endif()
  endforeach()
  string(REPLACE "/" "_" flat ${name})
  set(out ${PROJECT_BINARY_DIR}/src/${flat}_families.inc)
  file(CONFIGURE OUTPUT ${out} CONTENT "${text}" @ONLY)
endfunction()
