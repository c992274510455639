// Decodes the one number of a tensor. Narrow floating-point numbers are widened bit by bit,
// because a processor would change the payload of some NaNs.
#include "client/tfevents/tensor.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "client/tfevents/proto_wire.h"

namespace tacho::client {
namespace {

using Field = ProtoFields::Field;
using Type = ProtoFields::Type;

constexpr uint32_t kTensorDtype = 1;
constexpr uint32_t kTensorShape = 2;
constexpr uint32_t kTensorContent = 4;
constexpr uint32_t kShapeDim = 2;
constexpr uint32_t kShapeUnknownRank = 3;
constexpr uint32_t kDimSize = 1;

// How the numbers of one DataType lie in a TensorProto.
struct Encoding {
  uint64_t dtype;
  size_t content_bytes;  // Bytes of a number in tensor_content.
  uint32_t list_field;   // The repeated field.
  Type list_type;        // The type of its elements.
  double (*widen)(uint64_t bits);
};

double FromFloat(uint64_t bits) { return WidenFloat(static_cast<uint32_t>(bits)); }
double FromBfloat16(uint64_t bits) { return WidenBfloat16(static_cast<uint16_t>(bits)); }
double FromHalf(uint64_t bits) { return WidenHalf(static_cast<uint16_t>(bits)); }
double FromUnsigned(uint64_t bits) { return static_cast<double>(bits); }
double FromBool(uint64_t bits) { return bits != 0 ? 1 : 0; }
template <typename Integer>
double FromSigned(uint64_t bits) {
  return static_cast<double>(static_cast<Integer>(bits));
}

constexpr std::array<Encoding, 13> kEncodings = {{
    {1, 4, 5, Type::kFixed32, FromFloat},
    {2, 8, 6, Type::kFixed64, DoubleFromBits},
    {3, 4, 7, Type::kVarint, FromSigned<int32_t>},
    {4, 1, 7, Type::kVarint, FromUnsigned},
    {5, 2, 7, Type::kVarint, FromSigned<int16_t>},
    {6, 1, 7, Type::kVarint, FromSigned<int8_t>},
    {9, 8, 10, Type::kVarint, FromSigned<int64_t>},
    {10, 1, 11, Type::kVarint, FromBool},
    {14, 2, 13, Type::kVarint, FromBfloat16},
    {17, 2, 7, Type::kVarint, FromUnsigned},
    {19, 2, 13, Type::kVarint, FromHalf},
    {22, 4, 16, Type::kVarint, FromUnsigned},
    {23, 8, 17, Type::kVarint, FromUnsigned},
}};

const Encoding* FindEncoding(uint64_t dtype) {
  for (const Encoding& encoding : kEncodings) {
    if (encoding.dtype == dtype) return &encoding;
  }
  return nullptr;
}

struct Shape {
  bool rank_zero = true;
  bool one_element = true;
};

bool DecodeDim(absl::string_view bytes, Shape* shape) {
  uint64_t size = 0;
  ProtoFields fields(bytes);
  for (Field field; fields.Next(&field);) {
    if (field.Is(kDimSize, Type::kVarint)) size = field.value;
  }
  shape->rank_zero = false;
  if (size != 1) shape->one_element = false;
  return !fields.malformed();
}

bool DecodeShape(absl::string_view bytes, Shape* shape) {
  ProtoFields fields(bytes);
  for (Field field; fields.Next(&field);) {
    if (field.Is(kShapeDim, Type::kBytes) && !DecodeDim(field.bytes, shape)) return false;
    if (field.Is(kShapeUnknownRank, Type::kVarint) && field.value != 0) shape->one_element = false;
  }
  return !fields.malformed();
}

// The numbers of a typed list, packed or not.
struct List {
  size_t count = 0;
  uint64_t first = 0;

  void Add(uint64_t bits) {
    if (count++ == 0) first = bits;
  }
};

bool AddPacked(absl::string_view bytes, Type type, List* list) {
  while (!bytes.empty()) {
    uint64_t bits = 0;
    const bool ok = type == Type::kVarint
                        ? ConsumeVarint(&bytes, &bits)
                        : ConsumeFixed(&bytes, type == Type::kFixed32 ? 4 : 8, &bits);
    if (!ok) return false;
    list->Add(bits);
  }
  return true;
}

bool CollectList(absl::string_view tensor, const Encoding& encoding, List* list) {
  ProtoFields fields(tensor);
  for (Field field; fields.Next(&field);) {
    if (field.Is(encoding.list_field, encoding.list_type)) {
      list->Add(field.value);
    } else if (field.Is(encoding.list_field, Type::kBytes)) {
      if (!AddPacked(field.bytes, encoding.list_type, list)) return false;
    }
  }
  return true;
}

}  // namespace

bool DecodeTensorNumber(absl::string_view bytes, TensorNumber* number) {
  *number = TensorNumber();
  uint64_t dtype = 0;
  absl::string_view content;
  Shape shape;
  ProtoFields fields(bytes);
  for (Field field; fields.Next(&field);) {
    if (field.Is(kTensorDtype, Type::kVarint)) dtype = field.value;
    if (field.Is(kTensorContent, Type::kBytes)) content = field.bytes;
    if (field.Is(kTensorShape, Type::kBytes) && !DecodeShape(field.bytes, &shape)) return false;
  }
  if (fields.malformed()) return false;
  number->rank_zero = shape.rank_zero;
  const Encoding* encoding = FindEncoding(dtype);
  if (encoding == nullptr || !shape.one_element) return true;
  List list;
  if (!CollectList(bytes, *encoding, &list)) return false;
  if (!content.empty()) {
    list = List();
    if (content.size() != encoding->content_bytes) return true;
    ConsumeFixed(&content, encoding->content_bytes, &list.first);
  } else if (list.count > 1) {
    return true;
  }
  number->single = true;
  number->value = encoding->widen(list.first);
  return true;
}

double DoubleFromBits(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

double WidenFloat(uint32_t bits) {
  const uint64_t sign = uint64_t{bits >> 31} << 63;
  const uint64_t fraction = bits & 0x7fffff;
  if ((bits >> 23 & 0xff) == 0xff) {
    return DoubleFromBits(sign | uint64_t{0x7ff} << 52 | fraction << 29);
  }
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return static_cast<double>(value);
}

double WidenBfloat16(uint16_t bits) { return WidenFloat(uint32_t{bits} << 16); }

double WidenHalf(uint16_t bits) {
  const uint64_t sign = uint64_t{bits} >> 15 << 63;
  const int exponent = bits >> 10 & 0x1f;
  const uint64_t fraction = bits & 0x3ff;
  if (exponent == 0x1f) return DoubleFromBits(sign | uint64_t{0x7ff} << 52 | fraction << 42);
  // A subnormal has no hidden bit and the exponent of the smallest normal number.
  const double magnitude = exponent == 0
                               ? std::ldexp(static_cast<double>(fraction), -24)
                               : std::ldexp(static_cast<double>(fraction | 0x400), exponent - 25);
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace tacho::client
