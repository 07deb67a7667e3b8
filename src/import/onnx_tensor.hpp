// ONNX tensors, in all their storages, as Tensors.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "core/tensor.hpp"
#include "onnx.pb.h"

namespace openrknn::import {

// The DType of a number of ONNX's TensorProto.DataType; nullopt for those that have none here (string, complex, ...).
std::optional<DType> dtype_from_onnx(int number);
std::string onnx_type_name(int number);
// The type that the number is computed in: float16, bfloat16 and float64 become float32, others stay.
DType computed_dtype(DType dtype);
constexpr int kOnnxFloat = 1;

// Reads tensors of one model: resolves external data inside the model's folder, keeps count of the bytes handed out.
class TensorReader {
 public:
  TensorReader(std::string model_path, int64_t budget) : model_path_(std::move(model_path)), budget_(budget) {}

  // With wide or half floats converted to float32. Errors name the tensor.
  Result<Tensor> read(const onnx::TensorProto& proto, const std::string& name);
  Result<Tensor> read_sparse(const onnx::SparseTensorProto& proto, const std::string& name);
  // Takes `bytes` from the budget. Results of constant folding count as well.
  Status charge(int64_t bytes, const std::string& name);
  // Whether any tensor was converted to float32.
  bool promoted() const { return promoted_; }
  void note_promotion() { promoted_ = true; }

 private:
  struct External {
    std::string location;
    int64_t offset = 0;
    std::optional<int64_t> length;
  };
  Result<External> external_of(const onnx::TensorProto& proto, const std::string& name) const;
  Result<std::span<const std::byte>> external_bytes(const onnx::TensorProto& proto, const std::string& name,
                                                    size_t needed);
  Result<Tensor> decode(const onnx::TensorProto& proto, const std::string& name, DType dtype, const Shape& shape);

  std::string model_path_;
  int64_t budget_;
  bool promoted_ = false;
  std::map<std::string, MappedFile, std::less<>> files_;  // by location
};

// Whether a float32 tensor holds an infinity or a NaN.
bool has_non_finite(const Tensor& tensor);

}  // namespace openrknn::import
