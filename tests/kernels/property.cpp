#include "kernels/property.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

namespace openrknn::testing {
namespace {

int64_t number_from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoll(text, nullptr, 10);
}

std::vector<const Property*>& properties() {
  static std::vector<const Property*> all;
  return all;
}

// Cases by function and instruction set.
using Counts = std::map<std::pair<std::string, std::string>, int64_t>;
Counts& counts() {
  static Counts all;
  return all;
}

class Summary : public ::testing::Environment {
 public:
  void TearDown() override {
    if (const char* path = std::getenv("OPENRKNN_CASES_CSV")) {
      if (std::FILE* file = std::fopen(path, "a")) {
        for (const auto& [key, n] : counts())
          std::fprintf(file, "%s,%s,%lld\n", key.first.c_str(), key.second.c_str(), static_cast<long long>(n));
        std::fclose(file);
      }
    }
    if (std::getenv("OPENRKNN_CASES") == nullptr) return;
    for (const auto& [key, n] : counts())
      std::printf("%-28s %-22s %9lld\n", key.first.c_str(), key.second.c_str(), static_cast<long long>(n));
  }
};
[[maybe_unused]] const auto* const kSummary = ::testing::AddGlobalTestEnvironment(new Summary);

// What a crash prints: the case in hand, and then what would have happened.
std::array<char, 256> in_hand{};
using Action = struct sigaction;
Action before_crash{};

void on_crash(int signal) {
  const auto length = std::find(in_hand.begin(), in_hand.end(), '\0') - in_hand.begin();
  [[maybe_unused]] const auto written = write(STDERR_FILENO, in_hand.data(), static_cast<size_t>(length));
  sigaction(signal, &before_crash, nullptr);
}

void watch_for_crashes() {
  static const bool watched = [] {
    Action action{};
    action.sa_handler = on_crash;
    return sigaction(SIGSEGV, &action, &before_crash) == 0;
  }();
  (void)watched;
}

constexpr size_t kBlockBytes = size_t{1} << 20;

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

int64_t any_extent(Rng& rng, int64_t most) {
  switch (rng() % 4) {
    case 0:
      return std::min<int64_t>(most, pick(rng, 0, 3));
    case 1: {
      const int64_t width = int64_t{4} << (rng() % 5);
      return std::clamp<int64_t>(width * pick(rng, 1, std::max<int64_t>(1, most / width)) + pick(rng, -1, 1), 0, most);
    }
    default:
      return pick(rng, 0, most);
  }
}

int64_t any_size(Rng& rng, int bits) {
  if (one_in(rng, 16)) {
    const int64_t top = bits == 0 ? 0 : (int64_t{1} << (bits - 1)) - 1 + (int64_t{1} << (bits - 1));
    return one_in(rng, 2) ? top : -top - (bits == 0 ? 0 : 1);
  }
  const auto n = static_cast<int>(rng() % static_cast<uint32_t>(bits + 1));
  const auto magnitude = static_cast<int64_t>(n == 0 ? 0 : rng.wide() >> (64 - n));
  return one_in(rng, 2) ? magnitude : -magnitude;
}

int64_t near_tie(Rng& rng, int shift, int bits) {
  if (shift == 0 || shift >= bits) return any_size(rng, bits);
  const int64_t k = any_size(rng, bits - shift) | 1;
  return k * (int64_t{1} << (shift - 1)) + pick(rng, -1, 1);
}

float any_float(Rng& rng) {
  static constexpr std::array<float, 12> kSpecial = {0.0F,     -0.0F,    1.0F,     -1.0F,      65504.0F, 65519.996F,
                                                     65520.0F, 0x1p-24F, 0x1p-25F, 0x1.8p-25F, INFINITY, -INFINITY};
  switch (rng() % 6) {
    case 0:
      return std::bit_cast<float>(rng());
    case 1:
      return kSpecial[rng() % kSpecial.size()];
    case 2:  // halves and the middles between them
      return static_cast<float>(pick(rng, -4096, 4096)) *
             std::bit_cast<float>(static_cast<uint32_t>(pick(rng, 101, 130)) << 23);
    case 3:
      return std::bit_cast<float>((rng() & 0x807FFFFFU) | static_cast<uint32_t>(pick(rng, 0, 3)) << 23);  // subnormals
    default:
      return static_cast<float>(static_cast<int32_t>(rng())) * 0x1p-31F * static_cast<float>(1 << pick(rng, 0, 8));
  }
}

uint16_t any_half(Rng& rng) {
  static constexpr std::array<uint16_t, 10> kSpecial = {0,      0x8000, 0x7C00, 0xFC00, 0x7E00,
                                                        0x7C01, 0xFFFF, 1,      0x7BFF, 0x3C00};
  return one_in(rng, 8) ? kSpecial[rng() % kSpecial.size()] : static_cast<uint16_t>(rng());
}

void fill(Rng& rng, std::span<int8_t> values) {
  const auto kind = rng() % 8;
  const auto constant = static_cast<int8_t>(kind == 0 ? -128 : kind == 1 ? 127 : 0);
  for (int8_t& x : values) {
    x = kind < 2 ? constant : kind == 2 ? static_cast<int8_t>(one_in(rng, 2) ? -128 : 127) : static_cast<int8_t>(rng());
  }
}

Property::Property(std::initializer_list<const char*> names, int64_t usual_cases, int64_t most_cases)
    : usual(usual_cases), most(most_cases), functions(names.begin(), names.end()) {
  properties().push_back(this);
}

std::vector<std::string> functions_with_properties() {
  std::vector<std::string> names;
  for (const Property* property : properties())
    names.insert(names.end(), property->functions.begin(), property->functions.end());
  return names;
}

Cases::Cases(const Property& property, std::vector<std::string> isas)
    : property_(property),
      isas_(std::move(isas)),
      wanted_(std::min(property.most, number_from_environment("OPENRKNN_CASES", property.usual))),
      only_(number_from_environment("OPENRKNN_CASE", -1)),
      seed_(static_cast<uint64_t>(number_from_environment("OPENRKNN_SEED", 1))) {
  watch_for_crashes();
}

bool Cases::next() {
  if (number_ >= 0 && !skipped_) ++counted_;
  if (::testing::Test::HasFailure()) return false;
  const bool done = only_ >= 0 ? number_ >= 0 : counted_ >= wanted_ || number_ >= 20 * wanted_;
  if (done) return false;
  number_ = only_ >= 0 ? only_ : number_ + 1;
  skipped_ = false;
  uint64_t hash = seed_ * 0x100000001B3U;
  for (const char c : property_.functions.front()) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3U;
  rng_ = Rng(hash + static_cast<uint64_t>(number_) * 0xD1342543DE82EF95U);
  std::snprintf(in_hand.data(), in_hand.size(), "crashed in %s: OPENRKNN_SEED=%llu OPENRKNN_CASE=%lld\n",
                property_.functions.front().c_str(), static_cast<unsigned long long>(seed_),
                static_cast<long long>(number_));
  return true;
}

Cases::~Cases() {
  if (::testing::Test::HasFailure()) {
    std::printf("%s: repeat this case with OPENRKNN_SEED=%llu OPENRKNN_CASE=%lld\n",
                property_.functions.front().c_str(), static_cast<unsigned long long>(seed_),
                static_cast<long long>(number_));
    return;
  }
  for (const std::string& function : property_.functions) {
    for (const std::string& isa : isas_) counts()[{function, isa}] += counted_;
  }
  if (only_ < 0 && counted_ < wanted_)
    ADD_FAILURE() << property_.functions.front() << ": only " << counted_ << " of " << number_ + 1 << " cases count";
}

Memory::~Memory() {
  for (uint8_t* block : blocks_) munmap(block, kBlockBytes + 2 * page_bytes());
}

void* Memory::place(Rng& rng, size_t bytes) {
  if (taken_ == blocks_.size()) {
    void* block = mmap(nullptr, kBlockBytes + 2 * page_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* const first = static_cast<uint8_t*>(block);
    if (block == MAP_FAILED || mprotect(first + page_bytes(), kBlockBytes, PROT_READ | PROT_WRITE) != 0) std::abort();
    blocks_.push_back(first);
  }
  if (bytes > kBlockBytes) std::abort();  // a test asks for too much
  uint8_t* const first = blocks_[taken_++] + page_bytes();
  return one_in(rng, 4) ? first : first + kBlockBytes - bytes;
}

}  // namespace openrknn::testing
