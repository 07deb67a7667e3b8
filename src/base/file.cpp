#include "base/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace openrknn {
namespace {

Error io_error(const char* what, const std::string& path, int code, const char* hint) {
  const ErrorCode kind = code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  return Error{kind, what, path, std::strerror(code), hint};
}

// The file that a rename may replace: `path` itself, or what it links to: the link keeps its place. What is no regular
// file (a pipe, a device) is refused.
Result<std::string> replaceable(const std::string& path) {
  namespace fs = std::filesystem;
  const char* const hint = "give the path of a regular file or of a new one";
  std::error_code code;
  const fs::file_status link = fs::symlink_status(path, code);
  if (link.type() == fs::file_type::none || link.type() == fs::file_type::not_found) return path;
  if (link.type() == fs::file_type::symlink) {
    const fs::path target = fs::canonical(path, code);
    if (code) return Error{ErrorCode::kIo, "cannot write the file", path, "it is a symbolic link to nothing", hint};
    if (fs::is_regular_file(target, code)) return target.string();
  } else if (link.type() == fs::file_type::regular) {
    return path;
  }
  return Error{ErrorCode::kIo, "cannot write the file", path,
               fs::is_directory(path, code) ? "it is a folder" : "it is not a regular file", hint};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: a pipe without a writer must not hang before it is refused.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return io_error("cannot open the file", path, errno, "check the path and its permissions");
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    const int code = errno;
    ::close(fd);
    return io_error("cannot read the file", path, code, "check the path and its permissions");
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    const char* kind = S_ISDIR(info.st_mode) ? "it is a directory" : "it is not a regular file";
    return Error{ErrorCode::kInvalidArgument, "cannot read the file", path, kind, "give the path of a file"};
  }
  MappedFile file;
  file.size_ = static_cast<size_t>(info.st_size);
  if (file.size_ > 0) {
    void* address = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED) {
      const int code = errno;
      ::close(fd);
      file.size_ = 0;
      return io_error("cannot map the file", path, code, "check the free address space");
    }
    file.data_ = static_cast<const std::byte*>(address);
  }
  ::close(fd);
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Result<std::string> read_text_file(const std::string& path) {
  OPENRKNN_TRY(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status write_file_atomically(const std::string& given, std::span<const std::byte> bytes) {
  OPENRKNN_TRY(const std::string path, replaceable(given));
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return io_error("cannot create the file", path, errno, "give a path in an existing, writable folder");
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int code = errno;
      ::close(fd);
      ::unlink(temporary.c_str());
      return io_error("cannot write the file", path, code, "check the free space");
    }
    done += static_cast<size_t>(n);
  }
  if (::close(fd) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary.c_str());
    return io_error("cannot write the file", path, code, "give the path of a file in a writable folder");
  }
  return {};
}

Status write_file_atomically(const std::string& path, std::string_view text) {
  return write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

Status make_folders(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) return Error{ErrorCode::kIo, "cannot create the folder", path, code.message(), "check the path"};
  return {};
}

uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace openrknn
