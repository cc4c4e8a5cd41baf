// Package payload makes the buffers of a collective of an element type known only at run time. It
// fills them, calls the collective, and counts the wrong elements of a result. It takes no time
// and prints nothing.
package payload
