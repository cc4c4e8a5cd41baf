/* What the library calls types and operations of tensors, and their memory in order. */
#pragma once

#include "library.hpp"

namespace {

/* Elements are what the library calls a tensor's elements. */
struct Elements {
	int type;
	int64_t each; /* of them in one of the tensor's */
};

/* elements_of is for calls that only move data: what the library has no type for moves as bytes. */
Elements elements_of(const Tensor &t) {
	switch (t.scalar_type()) {
	case at::kByte: case at::kBool: return {TF_U8, 1};
	case at::kChar: return {TF_I8, 1};
	case at::kShort: return {TF_I16, 1};
	case at::kInt: return {TF_I32, 1};
	case at::kLong: return {TF_I64, 1};
	case at::kHalf: return {TF_F16, 1};
	case at::kBFloat16: return {TF_BF16, 1};
	case at::kFloat: return {TF_F32, 1};
	case at::kDouble: return {TF_F64, 1};
	case at::kComplexFloat: return {TF_C64, 1};
	case at::kComplexDouble: return {TF_C128, 1};
	default: break;
	}
	if (int type = type_of_version(t.scalar_type())) return {type, 1};
	return {TF_U8, static_cast<int64_t>(t.element_size())};
}

/* op_of is the operation of a reduction. Truth values are sums and products of bits. */
int op_of(const char *call, const ReduceOp &op, const Tensor &t) {
	const auto type = t.scalar_type();
	const bool integer = at::isIntegralType(type, true), truth = type == at::kBool;
	if (elements_of(t).each != 1) refuse(call, ": tensors of ", type, " can't be reduced");
	const auto only = [&](bool allowed, int result, const char *name, const char *whose) {
		if (!allowed) refuse(call, ": ReduceOp.", name, " of ", type, "; only ", whose, " have it");
		return result;
	};
	const auto kind = static_cast<ReduceOp::RedOpType>(op);
	switch (kind) {
	case ReduceOp::SUM: return truth ? TF_MAX : TF_SUM;
	case ReduceOp::PRODUCT: return truth ? TF_MIN : TF_PROD;
	case ReduceOp::AVG: return only(!integer, TF_AVERAGE, "AVG", "real and complex numbers");
	case ReduceOp::MIN: return only(!at::isComplexType(type), TF_MIN, "MIN", "integers and real numbers");
	case ReduceOp::MAX: return only(!at::isComplexType(type), TF_MAX, "MAX", "integers and real numbers");
	case ReduceOp::BAND: return only(integer, TF_BAND, "BAND", "integers");
	case ReduceOp::BOR: return only(integer, TF_BOR, "BOR", "integers");
	case ReduceOp::BXOR: return only(integer, TF_BXOR, "BXOR", "integers");
	default: refuse(call, ": reduction ", static_cast<int>(kind), "; there are SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR");
	}
}

void check_dense(const char *call, const Tensor &t) {
	if (t.layout() != at::kStrided || !t.device().is_cpu())
		refuse(call, ": a ", t.layout(), " tensor on ", t.device(), "; tierflow has dense tensors on the CPU: for others use a backend that has them");
}

/* check_like holds that tensors have the size and type of one, as their blocks do. */
void check_like(const char *call, const Tensors &list, const Tensor &one) {
	for (size_t i = 0; i < list.size(); i++) {
		check_dense(call, list[i]);
		if (list[i].scalar_type() != one.scalar_type() || list[i].numel() != one.numel())
			refuse(call, ": tensor ", i, " of a list has ", list[i].numel(), " elements of ", list[i].scalar_type(), "; the other side has ", one.numel(), " of ", one.scalar_type());
	}
}

const Tensor &only(const char *call, const Tensors &list) {
	if (list.size() != 1) refuse(call, ": ", list.size(), " tensors; a rank has one");
	check_dense(call, list[0]);
	return list[0];
}

const Tensors &only_list(const char *call, const std::vector<Tensors> &lists, int size) {
	if (lists.size() != 1 || lists[0].size() != static_cast<size_t>(size))
		refuse(call, ": ", lists.size(), " lists of ", lists.empty() ? 0 : lists[0].size(), " tensors; a rank has one list, of a tensor for each of ", size, " ranks");
	return lists[0];
}

/* in_line reports whether a tensor's memory has its elements in order, and nothing else. */
bool in_line(const Tensor &t) { return t.is_contiguous() && !t.is_conj() && !t.is_neg(); }

/* given is a tensor's elements in order: itself, or a copy. */
Tensor given(const Tensor &t) { return in_line(t) ? t : t.resolve_conj().resolve_neg().contiguous(); }

/* room is where a result goes before deliver; keep: the tensor's elements are there. */
Tensor room(const Tensor &t, bool keep = false) { return in_line(t) ? t : keep ? given(t).clone(at::MemoryFormat::Contiguous) : at::empty(t.sizes(), t.options().memory_format(at::MemoryFormat::Contiguous)); }

void deliver(const Tensor &t, const Tensor &result) {
	if (!t.is_same(result)) t.copy_(result.view(t.sizes()));
}

char *bytes_of(const Tensor &t) { return static_cast<char *>(t.data_ptr()); }

/* apart is a given tensor that has no byte in common with the result. */
Tensor apart(const Tensor &from, const Tensor &result) {
	const char *a = bytes_of(from), *b = bytes_of(result);
	return a < b + result.nbytes() && b < a + from.nbytes() ? from.clone() : from;
}

/* row is the elements of several tensors as one, if they lie one behind the other in its memory, as those of chunk do; else none. */
Tensor row(const Tensors &list) {
	if (list.empty()) return Tensor();
	const Tensor &first = list[0];
	int64_t n = 0;
	for (const auto &t : list) {
		const bool next = t.storage().unsafeGetStorageImpl() == first.storage().unsafeGetStorageImpl() && t.storage_offset() == first.storage_offset() + n;
		if (!in_line(t) || !next || t.scalar_type() != first.scalar_type()) return Tensor();
		n += t.numel();
	}
	return first.as_strided({n}, {1});
}

/* rows has room for a list's elements, one after the other: their own memory if they lie so. spread copies what isn't there. */
Tensor rows(const Tensors &list) {
	const Tensor own = row(list);
	return own.defined() ? own : at::empty({static_cast<int64_t>(list.size()) * list[0].numel()}, list[0].options().memory_format(c10::nullopt));
}

/* flat is the elements of several tensors of a type, one after the other. */
Tensor flat(const Tensors &list) {
	const Tensor own = row(list);
	if (own.defined()) return own;
	Tensors parts;
	for (const auto &t : list) parts.push_back(given(t).reshape({-1}));
	return at::cat(parts);
}

/* spread copies such elements to the tensors, beginning at one. */
void spread(const Tensor &from, int64_t at, const Tensors &list) {
	for (const auto &t : list) {
		const Tensor part = from.narrow(0, at, t.numel());
		if (bytes_of(part) != bytes_of(t)) t.copy_(part.view(t.sizes()));
		at += t.numel();
	}
}

} // namespace
