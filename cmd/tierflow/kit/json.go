package kit

import (
	"encoding/json"
	"io"
)

// WriteJSON writes v for people to read too.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(Raw(w))
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
