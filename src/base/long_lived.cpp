#include "base/long_lived.hpp"

#include <cstdint>
#include <mutex>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace openrknn {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kBlock = size_t{32} << 20;       // of addresses; the system gives memory as it is written
constexpr size_t kLeastPiece = size_t{64} << 10;  // smaller ones would keep a huge page for themselves

struct Block {
  std::byte* begin = nullptr;
  size_t size = 0, used = 0;
  int64_t pieces = 0;
};

// In front of every piece.
struct alignas(kAlignment) Header {
  Block* block;  // nullptr: the piece has memory of its own
};

#if defined(__linux__)
// Whole huge pages.
Block* map_block(size_t bytes) {
  const size_t size = (bytes + kHugePage - 1) / kHugePage * kHugePage, mapped = size + kHugePage;
  void* begin = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return nullptr;  // NOLINT(performance-no-int-to-ptr): the system's own macro
  auto* first = static_cast<std::byte*>(begin);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) munmap(first, before);
  munmap(first + before + size, kHugePage - before);
#if defined(MADV_HUGEPAGE)
  madvise(first + before, size, MADV_HUGEPAGE);  // a wish: without huge pages it is memory as any other
#endif
  return new Block{first + before, size};
}

void unmap_block(Block* block) {
  munmap(block->begin, block->size);
  delete block;
}

class Blocks {
 public:
  static Blocks& all() {
    static auto* blocks = new Blocks;  // never destroyed: statics of others may free pieces later
    return *blocks;
  }

  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (current_ == nullptr || current_->size - current_->used < bytes) {
      Block* fresh = map_block(bytes > kBlock ? bytes : kBlock);
      if (fresh == nullptr) throw std::bad_alloc();
      current_ = fresh;
    }
    std::byte* piece = current_->begin + current_->used;
    current_->used += bytes;
    ++current_->pieces;
    auto* header = new (piece) Header{current_};
    return header + 1;
  }

  void give_back(Block* block) {
    const std::lock_guard lock(mutex_);
    if (--block->pieces > 0) return;
    if (block == current_) current_ = nullptr;
    unmap_block(block);
  }

 private:
  std::mutex mutex_;
  Block* current_ = nullptr;
};
#endif

}  // namespace

void* allocate_long_lived(size_t bytes) {
  if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment + sizeof(Header);
#if defined(__linux__)
  if (size >= kLeastPiece) return Blocks::all().take(size);
#endif
  auto* header = new (::operator new (size, std::align_val_t{kAlignment})) Header{nullptr};
  return header + 1;
}

void free_long_lived(void* piece) noexcept {
  if (piece == nullptr) return;
  auto* header = static_cast<Header*>(piece) - 1;
#if defined(__linux__)
  if (header->block != nullptr) return Blocks::all().give_back(header->block);
#endif
  ::operator delete (header, std::align_val_t{kAlignment});
}

}  // namespace openrknn
