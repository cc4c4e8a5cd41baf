package kernel_test

import (
	"fmt"
	"unsafe"

	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/tasks"
)

func bytesOf(s []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 8*len(s))
}

func ExampleFor() {
	sum, err := kernel.For(tasks.Average, tasks.Float64)
	if err != nil {
		fmt.Println(err)
		return
	}
	acc, peer := []float64{1, 2, 3}, []float64{5, 6, 8}
	sum(bytesOf(acc), bytesOf(acc), bytesOf(peer))
	kernel.Finish(tasks.Average, tasks.Float64, 2, 2)(bytesOf(acc))
	fmt.Println(acc)
	// Output: [3 4 5.5]
}

func ExampleFor_undefined() {
	_, err := kernel.For(tasks.Average, tasks.Int32)
	fmt.Println(err)
	// Output: kernel: average is not defined on i32: it is on f16 bf16 f32 f64 c64 c128; i32 has sum prod min max band bor bxor land lor lxor
}
