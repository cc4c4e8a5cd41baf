package machine_test

import (
	"fmt"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
)

func ExampleParse() {
	data := `{
  "version": 1,
  "provenance": {"method": "assumed"},
  "links": [
    {"level": "s", "latency_ns": 200, "send_ns": 100, "recv_ns": 100, "send_byte_ns": 0.1},
    {"level": "i", "latency_ns": 20000, "byte_ns": 0.8, "send_ns": 3000, "recv_ns": 3000}
  ],
  "copy_byte_ns": 0.1,
  "reduce_byte_ns": 0.15
}`
	m, err := machine.Parse("machine.json", []byte(data))
	if err != nil {
		fmt.Println(err)
		return
	}
	link, err := m.Link(levels.Standard(2)[1])
	fmt.Println(link.Latency, link.Byte, err)
	// Output:
	// 20000 0.8 <nil>
}
