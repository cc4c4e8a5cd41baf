// Package local makes worlds of ranks in goroutines of one process.
//
// Messages go by the ring of a pair of ranks or, if they carry an address or the ring is
// full, to the inbox of the receiver; large payloads are copied straight to their place. A
// [Shaper] such as a [Network] makes messages take their time.
//
//	world := local.New(2, executor.Config{})
//	defer world.Close()
package local
