package rules_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner/rules"
)

// A program without the import is told what to import. The error has the words that need it.
func TestWordsNotImported(t *testing.T) {
	for _, plan := range []string{"ompi=6", "w=2;bcast:fs=4KiB, ompi=6/65536", "bcast:mpich=binomial;reduce:ompi=1"} {
		_, err := rules.ExpandWords(plan)
		if err == nil || strings.Count(err.Error(), `ompi= and mpich= are words of other libraries; for them the program needs import _ "github.com/tierflow/tierflow/planner/rules/foreign"`) != 1 {
			t.Errorf("%s: %v", plan, err)
		}
	}
	for _, plan := range []string{"", ";", "fs=4KiB; bcast: w=2 ,i=adapt/chain;", "bcast:ompi", "nosuch=1"} {
		if got, err := rules.ExpandWords(plan); got != plan || err != nil {
			t.Errorf("%q: %q, %v", plan, got, err)
		}
	}
}

// Words of any library are replaced by what it says of the collective and the value.
func TestRegisterWords(t *testing.T) {
	say := func(collective, value string) (string, error) { return collective + "(" + value + ")", nil }
	rules.RegisterWords("test", say)
	const want = "w=2;bcast:fs=1,bcast(a=b),bcast();x:w=1"
	if got, err := rules.ExpandWords("w=2;bcast:fs=1,test=a=b, test=;x:w=1"); got != want || err != nil {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	rules.RegisterWords("refusing", func(string, string) (string, error) { return "", errors.New("none of it") })
	if _, err := rules.ExpandWords("bcast:refusing=7"); err == nil || err.Error() != `plan "bcast:refusing=7": none of it` {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("words are registered twice")
		}
	}()
	rules.RegisterWords("test", say)
}
