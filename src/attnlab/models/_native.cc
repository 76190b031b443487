// Row sums of a sparse matrix with small integer entries: out[r] = sum_k count[k] * table[id[k]].
//
// XLA has no sparse product on the CPU that comes near the memory's speed: its gather and scatter spend four to
// ten nanoseconds on an element. This loop needs one pass, no scratch memory and no padding, and adds the entries
// of a row in the order in which they are stored, so that the sum of a row does not depend on the batch width.

#include <cstdint>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

// Few columns: the sums of a row stay in registers.
template <typename T, int kColumns>
void SumRowsFixed(const int32_t* offsets, const int32_t* ids, const T* counts, const T* table, T* out, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    T sum[kColumns] = {};
    for (int32_t k = offsets[r]; k < offsets[r + 1]; ++k) {
      const T* entry = table + static_cast<int64_t>(ids[k]) * kColumns;
      if (counts == nullptr) {
        for (int j = 0; j < kColumns; ++j) sum[j] += entry[j];
      } else {
        for (int j = 0; j < kColumns; ++j) sum[j] += counts[k] * entry[j];
      }
    }
    for (int j = 0; j < kColumns; ++j) out[r * kColumns + j] = sum[j];
  }
}

template <typename T>
void SumRowsAny(const int32_t* offsets, const int32_t* ids, const T* counts, const T* table, T* out, int64_t rows,
                int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    T* sum = out + r * columns;
    for (int64_t j = 0; j < columns; ++j) sum[j] = T(0);
    for (int32_t k = offsets[r]; k < offsets[r + 1]; ++k) {
      const T* entry = table + static_cast<int64_t>(ids[k]) * columns;
      const T count = counts == nullptr ? T(1) : counts[k];
      for (int64_t j = 0; j < columns; ++j) sum[j] += count * entry[j];
    }
  }
}

template <typename T>
void SumRows(const int32_t* offsets, const int32_t* ids, const T* counts, const T* table, T* out, int64_t rows,
             int64_t columns) {
  switch (columns) {
#define ATTNLAB_COLUMNS(N) \
  case N:                  \
    return SumRowsFixed<T, N>(offsets, ids, counts, table, out, rows);
    ATTNLAB_COLUMNS(1)
    ATTNLAB_COLUMNS(2)
    ATTNLAB_COLUMNS(3)
    ATTNLAB_COLUMNS(4)
    ATTNLAB_COLUMNS(5)
    ATTNLAB_COLUMNS(6)
    ATTNLAB_COLUMNS(7)
    ATTNLAB_COLUMNS(8)
    ATTNLAB_COLUMNS(9)
    ATTNLAB_COLUMNS(10)
    ATTNLAB_COLUMNS(11)
    ATTNLAB_COLUMNS(12)
#undef ATTNLAB_COLUMNS
    default:
      return SumRowsAny<T>(offsets, ids, counts, table, out, rows, columns);
  }
}

// table: (..., entries, columns), out: (..., rows, columns); leading axes are a batch that shares one matrix.
// An empty `counts` stands for ones.
template <ffi::DataType kType>
ffi::Error RowSums(ffi::Buffer<ffi::S32> offsets, ffi::Buffer<ffi::S32> ids, ffi::Buffer<kType> counts,
                   ffi::Buffer<kType> table, ffi::ResultBuffer<kType> out) {
  const auto in_shape = table.dimensions();
  const auto out_shape = out->dimensions();
  if (in_shape.size() < 2 || out_shape.size() != in_shape.size()) {
    return ffi::Error::InvalidArgument("row sums take a table of at least two axes");
  }
  const int64_t columns = in_shape.back();
  const int64_t entries = in_shape[in_shape.size() - 2];
  const int64_t rows = out_shape[out_shape.size() - 2];
  int64_t batch = 1;
  for (size_t axis = 0; axis + 2 < out_shape.size(); ++axis) batch *= out_shape[axis];
  const auto* weights = counts.element_count() == 0 ? nullptr : counts.typed_data();
  for (int64_t b = 0; b < batch; ++b) {
    SumRows(offsets.typed_data(), ids.typed_data(), weights, table.typed_data() + b * entries * columns,
            out->typed_data() + b * rows * columns, rows, columns);
  }
  return ffi::Error::Success();
}

}  // namespace

#define ATTNLAB_HANDLER(NAME, TYPE)                              \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(NAME, (RowSums<TYPE>),           \
                                ffi::Ffi::Bind()                 \
                                    .Arg<ffi::Buffer<ffi::S32>>() \
                                    .Arg<ffi::Buffer<ffi::S32>>() \
                                    .Arg<ffi::Buffer<TYPE>>()    \
                                    .Arg<ffi::Buffer<TYPE>>()    \
                                    .Ret<ffi::Buffer<TYPE>>())

ATTNLAB_HANDLER(attnlab_row_sums_f32, ffi::F32);
ATTNLAB_HANDLER(attnlab_row_sums_f64, ffi::F64);
