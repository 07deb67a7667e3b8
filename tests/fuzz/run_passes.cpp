// A random valid network and a random order of passes, both from the input: the outputs stay what they were.
#include <cstring>

#include "fuzz/target.hpp"
#include "ops/registry.hpp"
#include "opt/pass.hpp"
#include "opt/random_network.hpp"
#include "opt/support.hpp"

using namespace openrknn;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMostPasses = 64;
  uint32_t seed = 0;
  if (size < sizeof(seed)) return 0;
  std::memcpy(&seed, data, sizeof(seed));
  Graph graph = opt::testing::random_network(seed);
  const auto inputs = opt::testing::wide_inputs(graph, seed);
  const auto wanted = opt::testing::outputs_of(graph, inputs);
  const double noise = opt::testing::rounding_noise(graph, inputs);
  const auto& passes = opt::passes();
  std::string order;
  for (size_t i = sizeof(seed); i < std::min(size, sizeof(seed) + kMostPasses); ++i) {
    const opt::PassInfo& pass = passes[data[i] % passes.size()];
    order += std::string(pass.name) + " ";
    opt::RewriteLog log;
    opt::PassContext context{{}, 3, &log};
    const auto count = pass.run(graph, context);
    if (!count.ok()) fuzz::fail(order + count.error().message());
    if (const Status verified = ops::verify(graph); !verified.ok()) fuzz::fail(order + verified.error().message());
  }
  const double difference = opt::testing::difference(wanted, opt::testing::outputs_of(graph, inputs), noise);
  if (difference > 1e-4)
    fuzz::fail(order + "network " + std::to_string(seed) + " differs by " + std::to_string(difference));
  return 0;
}
