// The .rknn file of openrknn: magic, version, section table, JSON description (zstd), raw blobs 64-byte aligned, one
// checksum a section. docs/FORMAT.md is its description.
#pragma once

#include <string>
#include <vector>

#include "model/program.hpp"

namespace openrknn::model {

std::vector<std::byte> serialize(const Program& program);  // deterministic
Status write_program(const Program& program, const std::string& path);
// Every byte is hostile: sizes, offsets, indices and checksums are checked, then validate() runs. A vendor-made .rknn
// is recognised and refused with what it is and what to do.
Result<Program> read_program(const std::string& path);
Result<Program> parse_program(std::span<const std::byte> bytes, const std::string& name);
// Does the file start like an openrknn or a vendor .rknn?
bool looks_like_rknn(std::span<const std::byte> head);

}  // namespace openrknn::model
