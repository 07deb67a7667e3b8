// Seeded random convolutional networks for the tests of the whole chain.
#pragma once

#include <random>

#include "ir/graph.hpp"

namespace openrknn::testing {

// About `nodes` operators on 4-D tensors: convolutions of all kinds, pools, elementwise, activations, concats, slices.
Graph random_network(uint32_t seed, int nodes);

}  // namespace openrknn::testing
