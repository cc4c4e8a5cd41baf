package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	foreignrules "github.com/tierflow/tierflow/planner/rules/foreign"
)

// foreignInfo is an algorithm of another library in the output of info --foreign --json.
type foreignInfo struct {
	Library    string `json:"library"`
	Collective string `json:"collective"`
	Number     int    `json:"number,omitempty"` // Open MPI's
	Name       string `json:"name"`
	Plan       string `json:"plan,omitempty"`
	Else       string `json:"else,omitempty"` // the plan unless Where holds
	Where      string `json:"where,omitempty"`
	Why        string `json:"why,omitempty"`     // there is no plan
	Closest    string `json:"closest,omitempty"` // how the plan differs
}

// foreignTable prints the table of other libraries' algorithms.
func foreignTable(out io.Writer, asJSON bool) error {
	if asJSON {
		var all []foreignInfo
		for _, r := range foreignrules.Rows() {
			all = append(all, foreignInfo(r))
		}
		return kit.WriteJSON(out, all)
	}
	w := kit.NewTable(out)
	for _, r := range foreignrules.Rows() {
		number := "-"
		if r.Number > 0 {
			number = strconv.Itoa(r.Number)
		}
		text := r.Plan
		switch {
		case r.Plan == "":
			text = "none: " + r.Why
		case r.Else != "":
			text += "; unless " + r.Where + ": " + r.Else
		case r.Where != "":
			text += "; only if " + r.Where
		}
		if r.Closest != "" {
			text += " (" + r.Closest + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Library, r.Collective, number, r.Name, text)
	}
	return w.Flush()
}
