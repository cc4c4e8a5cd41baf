package derived_test

import (
	"fmt"

	"github.com/tierflow/tierflow/costs/derived"
)

// A machine whose wire takes one message at a time, and what each bcast of 1 MiB among 16
// nodes takes on it if a message of 8 KiB takes 700 µs.
func Example() {
	gamma, err := derived.NewGamma([]float64{700e3, 1400e3, 2100e3, 2800e3})
	if err != nil {
		fmt.Println(err)
		return
	}
	line := derived.Line{Alpha: 20e3, Beta: 680e3 / 8192}
	for _, m := range derived.Models() {
		segment := int64(8 << 10)
		if !m.Segmented {
			segment = 1 << 20
		}
		fmt.Printf("%-11s %5.0f ms\n", m.Algorithm, line.NS(m.Coeff(16, 1<<20, segment, gamma))/1e6)
	}
	// Output:
	// linear       1306 ms
	// chain          99 ms
	// kchain        360 ms
	// binary        183 ms
	// splitbinary   141 ms
	// binomial      363 ms
}
