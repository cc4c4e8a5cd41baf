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

// WriteResult writes v as JSON, or else the text of it.
func WriteResult(w io.Writer, asJSON bool, v any, text func() []byte) error {
	if asJSON {
		return WriteJSON(w, v)
	}
	_, err := w.Write(text())
	return err
}
