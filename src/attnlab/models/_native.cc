// Sums over the rows of a sparse matrix with small integer entries, for attention pooling of bags of words.
//
// XLA has no sparse product on the CPU that comes near the memory's speed: its gather and scatter spend four to
// ten nanoseconds on an element. These loops need one pass, no scratch memory and no padding, and add the entries
// of a row in the order in which they are stored, so that the sum of a row does not depend on the batch width.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

// Calls `body` with the number of columns as a compile-time constant where it is small, else with 0.
template <typename Body>
void WithColumns(int64_t columns, Body body) {
  switch (columns) {
#define ATTNLAB_COLUMNS(N) \
  case N:                  \
    return body(std::integral_constant<int, N>());
    ATTNLAB_COLUMNS(1)
    ATTNLAB_COLUMNS(2)
    ATTNLAB_COLUMNS(3)
    ATTNLAB_COLUMNS(4)
    ATTNLAB_COLUMNS(5)
    ATTNLAB_COLUMNS(6)
    ATTNLAB_COLUMNS(7)
    ATTNLAB_COLUMNS(8)
    ATTNLAB_COLUMNS(10)
    ATTNLAB_COLUMNS(12)
    ATTNLAB_COLUMNS(16)
#undef ATTNLAB_COLUMNS
    default:
      return body(std::integral_constant<int, 0>());
  }
}

// The sum of scaled rows. With a known number of columns it stays in registers, in packs of 16 bytes, a half pack and a
// single number; written to memory at every addition, it would cost a store and a load each time.
template <typename T, int kColumns>
struct Sum {
  static constexpr int kLanes = 16 / sizeof(T), kPacks = kColumns / kLanes, kRest = kColumns % kLanes;
  static constexpr int kHalf = kRest >= 2 ? 2 : 0, kSingle = kRest - kHalf;
  typedef T Pack __attribute__((vector_size(16)));
  typedef T Half __attribute__((vector_size(2 * sizeof(T))));
  Pack packs[kPacks + 1] = {};
  Half half = {};
  T single = T(0);

  Sum(T*, int64_t) {}

  inline void Add(T scale, const T* entry) {
#pragma GCC unroll 8
    for (int j = 0; j < kPacks; ++j) {
      Pack value;
      std::memcpy(&value, entry + j * kLanes, sizeof(Pack));
      packs[j] += scale * value;
    }
    if constexpr (kHalf != 0) {
      Half value;
      std::memcpy(&value, entry + kPacks * kLanes, sizeof(Half));
      half += scale * value;
    }
    if constexpr (kSingle != 0) single += scale * entry[kColumns - 1];
  }

  inline void Store(T* out) const {
    std::memcpy(out, packs, kPacks * sizeof(Pack));
    if constexpr (kHalf != 0) std::memcpy(out + kPacks * kLanes, &half, sizeof(Half));
    if constexpr (kSingle != 0) out[kColumns - 1] = single;
  }
};

// With any number of columns, the sum is kept where it is to be stored.
template <typename T>
struct Sum<T, 0> {
  T* sum;
  int64_t columns;

  Sum(T* out, int64_t number) : sum(out), columns(number) {
    for (int64_t j = 0; j < columns; ++j) sum[j] = T(0);
  }

  inline void Add(T scale, const T* __restrict__ entry) {
    T* __restrict__ to = sum;
    for (int64_t j = 0; j < columns; ++j) to[j] += scale * entry[j];
  }

  inline void Store(T*) const {}
};

// out[r] = sum_k c_k table[id_k] over the entries k of row r.
template <typename T, int kColumns>
void SumRows(const int32_t* offsets, const int32_t* ids, const T* counts, const T* table, T* out, int64_t rows,
             int64_t columns) {
  if (kColumns != 0) columns = kColumns;
  for (int64_t r = 0; r < rows; ++r) {
    Sum<T, kColumns> sum(out + r * columns, columns);
    const int32_t end = offsets[r + 1];
    for (int32_t k = offsets[r]; k < end; ++k) sum.Add(counts[k], table + static_cast<int64_t>(ids[k]) * columns);
    sum.Store(out + r * columns);
  }
}

// table: (..., entries, columns), out: (..., rows, columns); leading axes are a batch that shares one matrix.
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
  WithColumns(columns, [&](auto known) {
    for (int64_t b = 0; b < batch; ++b) {
      SumRows<ffi::NativeType<kType>, known.value>(
          offsets.typed_data(), ids.typed_data(), counts.typed_data(), table.typed_data() + b * entries * columns,
          out->typed_data() + b * rows * columns, rows, columns);
    }
  });
  return ffi::Error::Success();
}

// pooled[n] = sum_k c_k e_k table_k / mass[n], mass[n] = sum_k c_k e_k, over the words k of sentence n.
template <typename T, int kColumns>
void Pool(const int32_t* offsets, const int32_t* ids, const T* counts, const T* e, const T* table, T* pooled, T* mass,
          int64_t sentences, int64_t columns) {
  if (kColumns != 0) columns = kColumns;
  for (int64_t n = 0; n < sentences; ++n) {
    T* out = pooled + n * columns;
    Sum<T, kColumns> sum(out, columns);
    T total = T(0);
    const int32_t end = offsets[n + 1];
    for (int32_t k = offsets[n]; k < end; ++k) {
      const T weight = counts[k] * e[ids[k]];
      total += weight;
      sum.Add(weight, table + static_cast<int64_t>(ids[k]) * columns);
    }
    sum.Store(out);
    const T inverse = T(1) / total;
    for (int64_t j = 0; j < columns; ++j) out[j] *= inverse;
    mass[n] = total;
  }
}

// For each word, with Y = sum over its sentences of c r and y = sum of c t: dtable = e Y, ds = e (y + table . Y).
template <typename T, int kColumns>
void PoolGradient(const int32_t* offsets, const int32_t* ids, const T* counts, const T* e, const T* table, const T* t,
                  const T* r, T* ds, T* dtable, int64_t words, int64_t columns) {
  if (kColumns != 0) columns = kColumns;
  for (int64_t w = 0; w < words; ++w) {
    T* out = dtable + w * columns;
    Sum<T, kColumns> sum(out, columns);
    T total = T(0);
    const int32_t end = offsets[w + 1];
    for (int32_t k = offsets[w]; k < end; ++k) {
      total += counts[k] * t[ids[k]];
      sum.Add(counts[k], r + static_cast<int64_t>(ids[k]) * columns);
    }
    sum.Store(out);
    for (int64_t j = 0; j < columns; ++j) {
      total += table[w * columns + j] * out[j];
      out[j] *= e[w];
    }
    ds[w] = e[w] * total;
  }
}

// Operands of a batch have one leading axis: of the batch's size, or of size one where all runs share them.
template <ffi::DataType kType>
struct Operand {
  using T = ffi::NativeType<kType>;
  T* data;
  int64_t stride;
  Operand(T* first, size_t elements, int64_t size) : data(first), stride(elements > static_cast<size_t>(size) ? size : 0) {}
  T* at(int64_t run) const { return data + run * stride; }
};

template <ffi::DataType kType>
ffi::Error PoolCall(ffi::Buffer<ffi::S32> offsets, ffi::Buffer<ffi::S32> ids, ffi::Buffer<kType> counts,
                    ffi::Buffer<kType> e, ffi::Buffer<kType> table, ffi::ResultBuffer<kType> pooled,
                    ffi::ResultBuffer<kType> mass) {
  const int64_t columns = table.dimensions().back();
  const int64_t words = e.dimensions().back();
  const int64_t sentences = mass->dimensions().back();
  const int64_t runs = mass->element_count() / sentences;
  const Operand<kType> e_of(e.typed_data(), e.element_count(), words);
  const Operand<kType> table_of(table.typed_data(), table.element_count(), words * columns);
  WithColumns(columns, [&](auto known) {
    for (int64_t i = 0; i < runs; ++i) {
      Pool<ffi::NativeType<kType>, known.value>(offsets.typed_data(), ids.typed_data(), counts.typed_data(), e_of.at(i),
                                                table_of.at(i), pooled->typed_data() + i * sentences * columns,
                                                mass->typed_data() + i * sentences, sentences, columns);
    }
  });
  return ffi::Error::Success();
}

template <ffi::DataType kType>
ffi::Error PoolGradientCall(ffi::Buffer<ffi::S32> offsets, ffi::Buffer<ffi::S32> ids, ffi::Buffer<kType> counts,
                            ffi::Buffer<kType> e, ffi::Buffer<kType> table, ffi::Buffer<kType> t, ffi::Buffer<kType> r,
                            ffi::ResultBuffer<kType> ds, ffi::ResultBuffer<kType> dtable) {
  const int64_t columns = table.dimensions().back();
  const int64_t words = ds->dimensions().back();
  const int64_t sentences = t.dimensions().back();
  const int64_t runs = ds->element_count() / words;
  const Operand<kType> e_of(e.typed_data(), e.element_count(), words);
  const Operand<kType> table_of(table.typed_data(), table.element_count(), words * columns);
  const Operand<kType> t_of(t.typed_data(), t.element_count(), sentences);
  const Operand<kType> r_of(r.typed_data(), r.element_count(), sentences * columns);
  WithColumns(columns, [&](auto known) {
    for (int64_t i = 0; i < runs; ++i) {
      PoolGradient<ffi::NativeType<kType>, known.value>(
          offsets.typed_data(), ids.typed_data(), counts.typed_data(), e_of.at(i), table_of.at(i), t_of.at(i), r_of.at(i),
          ds->typed_data() + i * words, dtable->typed_data() + i * words * columns, words, columns);
    }
  });
  return ffi::Error::Success();
}

}  // namespace

#define ATTNLAB_INDEX(TYPE) ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::S32>>().Arg<ffi::Buffer<ffi::S32>>().Arg<ffi::Buffer<TYPE>>()
#define ATTNLAB_HANDLERS(SUFFIX, TYPE)                                                                    \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(attnlab_row_sums_##SUFFIX, (RowSums<TYPE>),                               \
                                ATTNLAB_INDEX(TYPE).Arg<ffi::Buffer<TYPE>>().Ret<ffi::Buffer<TYPE>>());   \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(attnlab_pool_##SUFFIX, (PoolCall<TYPE>),                                  \
                                ATTNLAB_INDEX(TYPE)                                                       \
                                    .Arg<ffi::Buffer<TYPE>>()                                             \
                                    .Arg<ffi::Buffer<TYPE>>()                                             \
                                    .Ret<ffi::Buffer<TYPE>>()                                             \
                                    .Ret<ffi::Buffer<TYPE>>());                                           \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(attnlab_pool_gradient_##SUFFIX, (PoolGradientCall<TYPE>),                 \
                                ATTNLAB_INDEX(TYPE)                                                       \
                                    .Arg<ffi::Buffer<TYPE>>()                                             \
                                    .Arg<ffi::Buffer<TYPE>>()                                             \
                                    .Arg<ffi::Buffer<TYPE>>()                                             \
                                    .Arg<ffi::Buffer<TYPE>>()                                             \
                                    .Ret<ffi::Buffer<TYPE>>()                                             \
                                    .Ret<ffi::Buffer<TYPE>>())

ATTNLAB_HANDLERS(f32, ffi::F32);
ATTNLAB_HANDLERS(f64, ffi::F64);
