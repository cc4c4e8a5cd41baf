package join

import (
	"crypto/hmac"
	"crypto/sha256"
)

// rendezvousKey and jobKey keep the uses of one secret apart.
func rendezvousKey(secret string) []byte { return derive(secret, "rendezvous", nil) }

func jobKey(secret string, job []byte) []byte { return derive(secret, "job", job) }

func derive(secret, use string, salt []byte) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte("tierflow key " + use + "\x00"))
	m.Write(salt)
	return m.Sum(nil)
}
