package launch_test

import (
	"context"
	"fmt"
	"os"

	"github.com/tierflow/tierflow/cmd/internal/launch"
)

func ExampleRun() {
	opts := launch.Options{Ranks: 1, Program: []string{"/bin/sh", "-c", "echo rank $TIERFLOW_RANK of $TIERFLOW_SIZE; exit 3"}}
	status, err := launch.Run(context.Background(), opts, os.Stdin, os.Stdout, os.Stderr)
	fmt.Println("status", status)
	fmt.Println(err)
	// Output:
	// [0] rank 0 of 1
	// status 3
	// rank 0 on localhost: exit status 3; its last lines:
	//   rank 0 of 1
}
