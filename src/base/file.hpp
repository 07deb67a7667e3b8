// Files: read or map whole, write under a temporary name and rename.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace openrknn {

// A file mapped read-only; unmapped when it goes. An empty file has an empty span.
class MappedFile {
 public:
  MappedFile() = default;
  static Result<MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

Result<std::string> read_text_file(const std::string& path);
// Writes beside `path` under a temporary name, then renames: a reader sees the old file or the whole new one.
Status write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
Status write_file_atomically(const std::string& path, std::string_view text);
Status make_folders(const std::string& path);

// 64-bit XXH3 of the bytes: guards against corruption, not against an attacker.
uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace openrknn
