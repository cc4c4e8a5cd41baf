package tasks

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels"
)

// ParseRequest is the inverse of [Request.String]: allreduce 1024 f32 sum. Blocks must be alike,
// the type must have a name, and the operation be built in. Fields without a word in the text
// are zero.
func ParseRequest(s string) (r Request, err error) {
	words := append(strings.Fields(s), make([]string, 6)...) // missing ones are empty
	var errs [5]error
	if r.Coll, errs[0] = ParseCollective(words[0]); errs[0] == nil && r.Coll.HasData() {
		r.Count, errs[1] = strconv.ParseInt(words[1], 10, 64)
		r.Type, errs[2] = ParseDatatype(words[2])
		at := 3
		if r.Reduces() {
			r.Op, errs[3] = ParseOp(words[at])
			at++
		}
		if r.Rooted() {
			var root int64
			root, errs[4] = strconv.ParseInt(words[at+1], 10, 32)
			r.Root = levels.Rank(root)
		}
	}
	if err = cmp.Or(errs[:]...); err == nil && r.String() != s {
		err = fmt.Errorf("it reads as %v", r)
	}
	if err != nil {
		return Request{}, fmt.Errorf("request %q: %w", s, err)
	}
	return r, nil
}
