# Debian package names in brackets: what to install when a search fails.
find_package(fmt REQUIRED)            # libfmt-dev
find_package(spdlog REQUIRED)         # libspdlog-dev
find_package(nlohmann_json REQUIRED)  # nlohmann-json3-dev
find_package(TBB REQUIRED)            # libtbb-dev
find_package(Protobuf REQUIRED)       # libprotobuf-dev protobuf-compiler
find_package(JPEG REQUIRED)           # libjpeg-dev
find_package(PNG REQUIRED)            # libpng-dev
find_package(CLI11 REQUIRED)          # libcli11-dev
find_package(PkgConfig REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)  # libxxhash-dev
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)      # libzstd-dev
find_package(yaml-cpp REQUIRED)       # libyaml-cpp-dev
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)  # 0.7 (Debian 12) has the plain name
endif()
