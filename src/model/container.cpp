#include "model/container.hpp"

#include <fmt/core.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/checked.hpp"
#include "model/container_json.hpp"

namespace openrknn::model {
namespace {

// Like PNG's: a transfer that mangles line ends or stops at a control character damages the magic itself.
constexpr std::array<unsigned char, 8> kMagic{'O', 'R', 'K', 'N', 0x0D, 0x0A, 0x1A, 0x0A};
constexpr std::array<unsigned char, 4> kVendorMagic{'R', 'K', 'N', 'N'};
constexpr uint32_t kVersion = 1;
constexpr int64_t kAlignment = 64;
// A description beyond this is not one of ours; the largest real networks stay below 10 MB.
constexpr uint64_t kMaxDescription = uint64_t{128} << 20;
constexpr int kZstdLevel = 9;

enum SectionKind : uint32_t { kDescription = 1, kWeights = 2 };
enum SectionCoding : uint32_t { kRaw = 0, kZstd = 1 };

// Fixed-size little-endian records. Both are plain integers without padding, written as they lie in memory.
struct Header {
  std::array<unsigned char, 8> magic;
  uint32_t version;
  uint32_t sections;
  uint64_t file_size;
  uint64_t checksum;  // of header (this field zero) and section table
  std::array<uint64_t, 4> reserved;
};
static_assert(sizeof(Header) == 64);

struct Section {
  uint32_t kind;
  uint32_t coding;
  uint64_t offset;
  uint64_t size;        // bytes in the file
  uint64_t plain_size;  // bytes after decoding
  uint64_t checksum;    // of the bytes in the file
  std::array<uint64_t, 3> reserved;
};
static_assert(sizeof(Section) == 64);
static_assert(std::endian::native == std::endian::little, "the records are written as they lie in memory");

constexpr uint32_t kSectionCount = 2;

template <typename T>
std::span<const std::byte> bytes_of(const T& record) {
  return std::as_bytes(std::span(&record, 1));
}

std::vector<std::byte> compress(const std::string& text) {
  std::vector<std::byte> out(ZSTD_compressBound(text.size()));
  const size_t size = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), kZstdLevel);
  out.resize(ZSTD_isError(size) != 0 ? 0 : size);
  return out;
}

uint64_t header_checksum(Header header, std::span<const Section> table) {
  header.checksum = 0;
  std::vector<std::byte> bytes(sizeof(Header) + table.size_bytes());
  std::memcpy(bytes.data(), &header, sizeof(Header));
  std::memcpy(bytes.data() + sizeof(Header), table.data(), table.size_bytes());
  return checksum(bytes);
}

struct Layouted {
  Section description, weights;
};

Error refuse(const std::string& name, std::string why,
             std::string hint = "build the file again or copy it again; it is damaged or cut off") {
  return Error{ErrorCode::kFormat, "cannot read the .rknn file", name, std::move(why), std::move(hint)};
}

bool starts_with(std::span<const std::byte> bytes, std::span<const unsigned char> magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

Status check_magic(std::span<const std::byte> bytes, const std::string& name) {
  if (starts_with(bytes, kMagic)) return {};
  if (starts_with(bytes, kVendorMagic)) {
    return Error{ErrorCode::kUnsupported, "cannot read the .rknn file", name,
                 "it was made by the vendor's toolkit (magic RKNN); its format is closed and openrknn does not read it",
                 "build a file from the source model: openrknn build MODEL -o OUT.rknn --target SOC"};
  }
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 32));
  if (head.starts_with("version https://git-lfs"))
    return refuse(name, "this is a Git LFS pointer, not the file itself", "run 'git lfs pull' in its repository");
  return refuse(name, bytes.empty() ? "the file is empty" : "it does not start like a .rknn file",
                "give a file that openrknn build has written");
}

Status check_section(const Section& s, std::span<const std::byte> bytes, int64_t from, const std::string& name,
                     const char* title) {
  const auto end = s.offset + s.size;
  if (s.offset > bytes.size() || s.size > bytes.size() - s.offset)
    return refuse(name, fmt::format("section {} lies outside the file", title));
  if (s.offset % kAlignment != 0 || s.offset < static_cast<uint64_t>(from))
    return refuse(name, fmt::format("section {} starts at a wrong offset", title));
  const auto gap = bytes.subspan(static_cast<size_t>(from), static_cast<size_t>(s.offset) - static_cast<size_t>(from));
  if (std::any_of(gap.begin(), gap.end(), [](std::byte b) { return b != std::byte{0}; }))
    return refuse(name, fmt::format("the bytes before section {} are not zero", title));
  const auto content = bytes.subspan(static_cast<size_t>(s.offset), static_cast<size_t>(end - s.offset));
  if (checksum(content) != s.checksum)
    return refuse(name, fmt::format("the checksum of section {} does not match", title));
  return {};
}

Result<Layouted> check_file(std::span<const std::byte> bytes, const std::string& name) {
  OPENRKNN_CHECK_OK(check_magic(bytes, name));
  Header header{};
  std::array<Section, kSectionCount> table{};
  if (bytes.size() < sizeof(header) + sizeof(table))
    return refuse(name, fmt::format("it ends after {} bytes, inside its header", bytes.size()));
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.version != kVersion) {
    return refuse(name, fmt::format("its version is {}, this program reads version {}", header.version, kVersion),
                  "use the openrknn version that wrote it, or build it again");
  }
  if (header.file_size != bytes.size())
    return refuse(name, fmt::format("it has {} bytes and should have {}", bytes.size(), header.file_size));
  if (header.sections != kSectionCount)
    return refuse(name, fmt::format("it has {} sections instead of {}", header.sections, kSectionCount));
  std::memcpy(table.data(), bytes.data() + sizeof(header), sizeof(table));
  if (header_checksum(header, table) != header.checksum)
    return refuse(name, "the checksum of its header does not match");
  const auto& [description, weights] = table;
  if (description.kind != kDescription || description.coding != kZstd || weights.kind != kWeights ||
      weights.coding != kRaw)
    return refuse(name, "unknown sections");
  OPENRKNN_CHECK_OK(check_section(description, bytes, sizeof(header) + sizeof(table), name, "description"));
  OPENRKNN_CHECK_OK(
      check_section(weights, bytes, static_cast<int64_t>(description.offset + description.size), name, "weights"));
  if (weights.offset + weights.size != bytes.size() || weights.plain_size != weights.size)
    return refuse(name, "the weights do not end where the file ends");
  return Layouted{description, weights};
}

Result<Program> read_description(std::span<const std::byte> bytes, const Section& s, const std::string& name) {
  if (s.plain_size > kMaxDescription)
    return refuse(name,
                  fmt::format("its description claims {} bytes, at most {} are read", s.plain_size, kMaxDescription));
  const auto packed = bytes.subspan(static_cast<size_t>(s.offset), static_cast<size_t>(s.size));
  std::string text(static_cast<size_t>(s.plain_size), '\0');
  const size_t size = ZSTD_decompress(text.data(), text.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0 || size != text.size()) return refuse(name, "its description cannot be decompressed");
  auto program = parse_description(text);
  if (!program.ok()) program.error().within(name);
  return program;
}

Result<Program> finish(Program program, WeightStore weights, const std::string& name) {
  program.weights = std::make_shared<const WeightStore>(std::move(weights));
  if (auto status = validate(program); !status.ok()) return status.error().within(name);
  return program;
}

}  // namespace

bool looks_like_rknn(std::span<const std::byte> head) {
  return starts_with(head, kMagic) || starts_with(head, kVendorMagic);
}

std::vector<std::byte> serialize(const Program& program) {
  const std::string plain = describe(program);
  const std::vector<std::byte> description = compress(plain);
  const auto weights = program.weights != nullptr ? program.weights->bytes() : std::span<const std::byte>{};
  Section s{
      kDescription,          kZstd, sizeof(Header) + kSectionCount * sizeof(Section), description.size(), plain.size(),
      checksum(description), {}};
  const auto weights_at = static_cast<uint64_t>(align_up(static_cast<int64_t>(s.offset + s.size), kAlignment));
  const std::array<Section, kSectionCount> table{
      s, Section{kWeights, kRaw, weights_at, weights.size(), weights.size(), checksum(weights), {}}};
  Header header{kMagic, kVersion, kSectionCount, weights_at + weights.size(), 0, {}};
  header.checksum = header_checksum(header, table);
  std::vector<std::byte> file(static_cast<size_t>(header.file_size));
  const auto put = [&](uint64_t at, std::span<const std::byte> part) {
    std::copy(part.begin(), part.end(), file.begin() + static_cast<int64_t>(at));
  };
  put(0, bytes_of(header));
  put(sizeof(Header), std::as_bytes(std::span(table)));
  put(s.offset, description);
  put(weights_at, weights);
  return file;
}

Status write_program(const Program& program, const std::string& path) {
  OPENRKNN_CHECK_OK(validate(program));
  return write_file_atomically(path, std::span<const std::byte>(serialize(program)));
}

Result<Program> parse_program(std::span<const std::byte> bytes, const std::string& name) {
  OPENRKNN_TRY(const Layouted sections, check_file(bytes, name));
  OPENRKNN_TRY(Program program, read_description(bytes, sections.description, name));
  const auto weights =
      bytes.subspan(static_cast<size_t>(sections.weights.offset), static_cast<size_t>(sections.weights.size));
  return finish(std::move(program), WeightStore(std::vector<std::byte>(weights.begin(), weights.end())), name);
}

Result<Program> read_program(const std::string& path) {
  OPENRKNN_TRY(MappedFile file, MappedFile::open(path));
  OPENRKNN_TRY(const Layouted sections, check_file(file.bytes(), path));
  OPENRKNN_TRY(Program program, read_description(file.bytes(), sections.description, path));
  const auto offset = static_cast<size_t>(sections.weights.offset);
  return finish(std::move(program), WeightStore(std::move(file), offset, static_cast<size_t>(sections.weights.size)),
                path);
}

}  // namespace openrknn::model
