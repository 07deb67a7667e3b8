// Seeded random networks of the operators that the rewrites know.
#pragma once

#include <cstdint>

#include "ir/graph.hpp"

namespace openrknn::opt::testing {

Graph random_network(uint32_t seed);

}  // namespace openrknn::opt::testing
