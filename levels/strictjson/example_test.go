package strictjson_test

import (
	"fmt"

	"github.com/tierflow/tierflow/levels/strictjson"
)

func Example() {
	data := `{"name": "m",
"nodes": [4, "four"],
"color": "red"}`
	var m struct {
		Name  string
		Nodes []int
	}
	r, err := strictjson.NewReader("machine.json", []byte(data))
	if err != nil {
		fmt.Println(err) // the syntax is wrong
		return
	}
	r.Object("a machine", []string{"name", "nodes"}, 2, func(key string) {
		switch key {
		case "name":
			m.Name = r.Text(`"name"`)
		case "nodes":
			r.Array(`"nodes"`, func() {
				var n int
				if r.Decode(&n, "a node") {
					m.Nodes = append(m.Nodes, n)
				}
			})
		}
	})
	fmt.Println(r.Err())
	// Output:
	// machine.json:2: a node is a string
	// machine.json:3: unknown key "color" in a machine; known are name, nodes
}
