// Which loops run: each table of kernels with the instruction set that it is compiled for.
#pragma once

#include <array>
#include <string_view>

namespace openrknn {

struct TableInUse {
  std::string_view kernels, isa;
};
std::array<TableInUse, 4> tables_in_use();

}  // namespace openrknn
