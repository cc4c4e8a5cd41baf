package rule

// row is a line of the rule: choose, when all conditions hold and no row above was taken.
type row[T any] struct {
	when    []condition // none: always
	choose  T
	because string // may have the words that [question.fill] replaces
}

// condition is a property of a question, in words and as a test.
type condition struct {
	text  string
	holds func(q *question) bool
}

// first returns the first row whose conditions hold. The last one has none.
func first[T any](rows []row[T], q *question) row[T] {
	for _, r := range rows[:len(rows)-1] {
		if r.holds(q) {
			return r
		}
	}
	return rows[len(rows)-1]
}

func (r row[T]) holds(q *question) bool {
	for _, c := range r.when {
		if !c.holds(q) {
			return false
		}
	}
	return true
}

// when lists conditions.
func when(all ...condition) []condition { return all }

// not turns a condition round.
func not(c condition) condition {
	return condition{"not (" + c.text + ")", func(q *question) bool { return !c.holds(q) }}
}
