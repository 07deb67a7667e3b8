# Compiler flags shared by every target. A result never depends on the optimisation level: no contraction of
# a * b + c into fma by the compiler, no fast-math; code that wants fma writes it.
find_program(OPENRKNN_CCACHE ccache)
if(OPENRKNN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${OPENRKNN_CCACHE})
endif()

add_library(openrknn_flags INTERFACE)
target_compile_options(openrknn_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -ffp-contract=off -fno-fast-math
  -fvisibility=hidden -fvisibility-inlines-hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 and 13 report an overlap inside std::string::insert for "text" + std::string (GCC bug 105651).
  target_compile_options(openrknn_flags INTERFACE -Wno-restrict)
endif()
if(OPENRKNN_WERROR)
  target_compile_options(openrknn_flags INTERFACE -Werror)
endif()
if(OPENRKNN_SANITIZE)
  target_compile_options(openrknn_flags INTERFACE -fsanitize=${OPENRKNN_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(openrknn_flags INTERFACE -fsanitize=${OPENRKNN_SANITIZE})
endif()
if(OPENRKNN_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "OPENRKNN_FUZZ needs clang: -DCMAKE_CXX_COMPILER=clang++ (the preset fuzz says so)")
  endif()
  target_compile_options(openrknn_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(openrknn_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
