package goal_test

import (
	"fmt"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/goal"
)

func ExampleParse() {
	s, err := goal.Parse("pair.goal", []byte("num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Ranks[0][0].Kind, s.Ranks[0][0].Size, s.Ranks[1][0].Kind)
	// Output:
	// send 8 recv
}
