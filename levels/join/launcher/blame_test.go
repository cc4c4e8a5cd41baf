package launcher

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/join/env"
)

// What a rank says of the first failure is what its launcher reads.
func TestBlame(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	if got := ReadBlame(read); got != nil {
		t.Errorf("before there is any: %+v", got)
	}
	vars := map[string]string{env.BlameFD: strconv.Itoa(int(write.Fd()))}
	getenv := func(key string) string { return vars[key] }
	Blamer(NewVars(getenv))(Blame{Rank: 3, Why: "panicked: \"boom\"\n" + strings.Repeat("\x01", 2*maxWhy)})
	got := ReadBlame(read)
	if got == nil || got.Rank != 3 || !strings.HasPrefix(got.Why, "panicked: \"boom\"\n") || len(got.Why) != maxWhy {
		t.Errorf("%+v", got)
	}
	vars[env.BlameFD] = strconv.Itoa(int(read.Fd()))
	if Blamer(NewVars(getenv)) != nil {
		t.Error("a descriptor that can't be written to is taken")
	}
}
