# The kernels and their tests alone: what a cross build for another processor can test with few packages.
find_package(fmt REQUIRED)     # libfmt-dev
find_package(spdlog REQUIRED)  # libspdlog-dev
find_package(TBB REQUIRED)     # libtbb-dev
find_package(PkgConfig REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)  # libxxhash-dev
find_package(GTest REQUIRED)   # libgtest-dev
foreach(folder IN ITEMS base core kernels)
  add_subdirectory(src/${folder})
endforeach()
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/kernels/*.cpp)
add_executable(kernels_test ${sources})
target_compile_options(kernels_test PRIVATE -O1)
target_include_directories(kernels_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/tests)
target_link_libraries(kernels_test PRIVATE openrknn_kernels GTest::gtest_main)
