package forest_test

import (
	"fmt"

	"github.com/tierflow/tierflow/costs/forest"
)

func ExampleTrain() {
	var x [][]float64 // log₂ of bytes
	var y []float64   // log₂ of ns
	for n := range 20 {
		x, y = append(x, []float64{float64(n)}), append(y, 10+float64(n/10))
	}
	f, err := forest.Train(x, y, forest.Options{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range []float64{3, 9.5, 16} {
		fmt.Printf("%4.1f: %.1f, unsure %v\n", n, f.Predict([]float64{n}), f.Spread([]float64{n}) > 0)
	}
	// Output:
	//  3.0: 10.0, unsure false
	//  9.5: 10.2, unsure true
	// 16.0: 11.0, unsure false
}
