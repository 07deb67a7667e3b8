// Damaged files: every prefix of a file (evenly spread places of a long one), and seeded corruptions, each handled in a
// process of its own. A model is imported, preflighted, run and built; a program is loaded and run. Allowed are success
// and an error; a signal, more than 2 GB of memory, more than a minute, a file left behind by a failed build, and a
// damaged program that runs to another result are violations.
//   openrknn_hostile [--prefixes N] [--corruptions N] [--seed N] FILE...        0: no violation
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "openrknn/toolkit.hpp"

namespace {

namespace fs = std::filesystem;
namespace tk = openrknn::toolkit;

constexpr int64_t kMostMemory = int64_t{2} << 30;
constexpr unsigned kMostSeconds = 60;
enum Exit : int { kDone = 0, kRefused = 1, kOtherResult = 100, kLeftover = 101 };

using Bytes = std::vector<char>;

Bytes read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write(const fs::path& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

tk::Tensors zeros(const std::vector<tk::TensorInfo>& infos) {
  tk::Tensors tensors;
  for (const tk::TensorInfo& info : infos) {
    tk::Tensor t;
    t.dtype = info.dtype;
    t.shape = info.shape;
    t.data.resize(static_cast<size_t>(t.elements()) * tk::dtype_size(t.dtype));
    tensors[info.name] = std::move(t);
  }
  return tensors;
}

// The outputs' bytes, one after the other.
Bytes flat(const std::vector<tk::Output>& outputs) {
  Bytes all;
  for (const tk::Output& output : outputs) {
    const auto* from = reinterpret_cast<const char*>(output.tensor.data.data());
    all.insert(all.end(), from, from + output.tensor.data.size());
  }
  return all;
}

int handle_program(const fs::path& path, const Bytes& wanted) {
  auto program = tk::Program::load(path.string());
  if (!program.ok()) return kRefused;
  const auto outputs = program->run(zeros(program->inputs()));
  if (!outputs.ok()) return kRefused;
  return wanted.empty() || flat(*outputs) == wanted ? kDone : kOtherResult;
}

int handle_model(const fs::path& path, const fs::path& folder) {
  const auto model = tk::Model::load(path.string());
  if (!model.ok()) return kRefused;
  (void)model->preflight("rk3588");
  (void)model->run(zeros(model->inputs()));
  tk::Config config;
  config.target = "rk3588";
  config.dtype = "fp16";
  const auto program = model->build(config, "");
  const fs::path built = folder / "built.rknn";
  const bool written = program.ok() && program->write(built.string()).ok();
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path() != path && !(written && entry.path() == built)) return kLeftover;
  }
  fs::remove(built);
  return written ? kDone : kRefused;
}

class Campaign {
 public:
  explicit Campaign(const fs::path& file)
      : file_(file), original_(read(file)), folder_(fs::temp_directory_path() / fmt::format("hostile_{}", getpid())) {
    fs::create_directories(folder_);
    is_program_ = file.extension() == ".rknn";
    if (!is_program_) return;
    auto program = tk::Program::load(file.string());
    if (!program.ok()) return;
    const auto outputs = program->run(zeros(program->inputs()));
    if (outputs.ok()) wanted_ = flat(*outputs);
  }
  ~Campaign() { fs::remove_all(folder_); }
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  void prefixes(size_t count) {
    const size_t steps = std::min(count, original_.size());
    for (size_t i = 0; i < steps; ++i) {
      const size_t length = i * original_.size() / steps;
      attempt(Bytes(original_.begin(), original_.begin() + static_cast<std::ptrdiff_t>(length)),
              fmt::format("the first {} bytes", length));
    }
  }

  void corruptions(size_t count, uint32_t seed) {
    for (size_t i = 0; i < count && !original_.empty(); ++i) {
      std::mt19937 random(seed + static_cast<uint32_t>(i));
      attempt(corrupted(random), fmt::format("corruption {}", seed + i));
    }
  }

  int violations() const { return violations_; }
  void print() const {
    fmt::print("{}: {} damaged files, {} refused, {} accepted, {} violations, at most {} MB\n", file_.string(),
               attempts_, refused_, attempts_ - refused_ - violations_, violations_, largest_ >> 20);
  }

 private:
  // Flips bits, overwrites, moves, removes and repeats pieces; near the front as often as anywhere, where structure is.
  Bytes corrupted(std::mt19937& random) const {
    Bytes bytes = original_;
    const auto below = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
    const size_t changes = 1 + below(4);
    for (size_t c = 0; c < changes && !bytes.empty(); ++c) {
      const size_t reach = random() % 2 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 4096);
      const size_t at = below(reach);
      const size_t length = std::min(1 + below(64), bytes.size() - at);
      const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      switch (random() % 6) {
        case 0:
          *first = static_cast<char>(*first ^ (1 << (random() % 8)));
          break;
        case 1:
          *first = static_cast<char>(random());
          break;
        case 2:
          for (size_t k = 0; k < length; ++k) bytes[at + k] = static_cast<char>(random());
          break;
        case 3:
          std::fill_n(first, length, static_cast<char>(random() % 2 == 0 ? 0 : 0xff));
          break;
        case 4:
          bytes.erase(first, first + static_cast<std::ptrdiff_t>(length));
          break;
        default: {
          const Bytes piece(first, first + static_cast<std::ptrdiff_t>(length));
          bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(reach)), piece.begin(), piece.end());
        }
      }
    }
    return bytes;
  }

  void attempt(const Bytes& bytes, const std::string& what) {
    ++attempts_;
    const fs::path path = folder_ / file_.filename();
    write(path, bytes);
    (void)std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(kRefused);
      alarm(kMostSeconds);
      // Unchanged bytes would be the original; any other must be refused or mean the same.
      _exit(is_program_ ? handle_program(path, wanted_) : handle_model(path, folder_));
    }
    int status = 0;
    rusage usage{};
    wait4(child, &status, 0, &usage);
    const int64_t memory = int64_t{usage.ru_maxrss} * 1024;
    largest_ = std::max(largest_, memory);
    std::string wrong;
    if (WIFSIGNALED(status)) {
      wrong = fmt::format("ended by signal {}", WTERMSIG(status));
    } else if (WEXITSTATUS(status) == kOtherResult) {
      wrong = "runs to another result";
    } else if (WEXITSTATUS(status) == kLeftover) {
      wrong = "leaves a file behind";
    } else if (WEXITSTATUS(status) > kRefused) {
      wrong = fmt::format("ends with {}", WEXITSTATUS(status));
    } else if (memory > kMostMemory) {
      wrong = fmt::format("takes {} MB", memory >> 20);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == kRefused) ++refused_;
    if (wrong.empty()) return;
    ++violations_;
    fmt::print("{}: {}: {}\n", file_.string(), what, wrong);
    fs::copy_file(path, fmt::format("hostile_{}_{}", violations_, file_.filename().string()),
                  fs::copy_options::overwrite_existing);
  }

  fs::path file_;
  Bytes original_;
  fs::path folder_;
  bool is_program_ = false;
  Bytes wanted_;
  int64_t largest_ = 0;
  int attempts_ = 0, refused_ = 0, violations_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  size_t prefixes = 100, corruptions = 200;
  uint32_t seed = 1;
  int violations = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--prefixes" && i + 1 < argc) {
      prefixes = std::strtoul(argv[++i], nullptr, 10);
    } else if (argument == "--corruptions" && i + 1 < argc) {
      corruptions = std::strtoul(argv[++i], nullptr, 10);
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = static_cast<uint32_t>(std::strtoul(argv[++i], nullptr, 10));
    } else {
      Campaign campaign(argument);
      campaign.prefixes(prefixes);
      campaign.corruptions(corruptions, seed);
      campaign.print();
      violations += campaign.violations();
    }
  }
  return violations == 0 ? 0 : 1;
}
