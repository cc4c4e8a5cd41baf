package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels/join/env"
)

// envVariable is one of info --env --json.
type envVariable struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"` // in the environment; empty: it isn't set. Of a secret no more than that it is
	Counts string `json:"counts"`          // whose value does; empty: the name is unknown
	Option string `json:"option,omitempty"`
	What   string `json:"what"`
}

// describeVariables lists the variables with their values in an environment of items NAME=VALUE, and behind them the unknown names.
func describeVariables(environ []string) (all []envVariable) {
	set := map[string]string{}
	for _, item := range environ {
		name, value, _ := strings.Cut(item, "=")
		set[name] = value
	}
	for _, v := range env.All() {
		d := envVariable{v.Name, set[v.Name], v.Whose.String(), v.Option, v.What}
		if d.Value != "" && v.Name == env.Secret {
			d.Value = "(set)"
		}
		all = append(all, d)
	}
	for _, u := range env.Unknown(environ) {
		all = append(all, envVariable{Name: u.Name, Value: set[u.Name], What: "no such variable is known; the nearest is " + u.Nearest})
	}
	return all
}

func variablesText(all []envVariable) []byte {
	var b bytes.Buffer
	w := kit.NewTable(&b)
	fmt.Fprintln(w, "variable\tvalue\tcounts\twhat it is for")
	for _, v := range all {
		what := v.What
		if v.Option != "" {
			what += "; Options." + v.Option
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.Name, cmp.Or(v.Value, "-"), cmp.Or(v.Counts, "-"), what)
	}
	w.Flush() // into memory
	return b.Bytes()
}
