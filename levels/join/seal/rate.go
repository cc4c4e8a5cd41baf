package seal

import (
	"time"

	"golang.org/x/sys/cpu"
)

// Rate returns how fast this processor seals and opens records, with one core, in bytes of
// plaintext per second. It takes as long as it is told for each.
func Rate(each time.Duration) (sealed, opened float64, err error) {
	secrets := make([]byte, 2*secretLen) // both directions have the same key
	s, err := newSession(secrets, true)
	if err != nil {
		return 0, 0, err
	}
	plain, record := make([]byte, MaxPlain), make([]byte, 0, MaxPlain+Overhead)
	sealed = rate(each, func() { record = s.Seal(record[:0], plain) })
	opened = rate(each, func() {
		if err == nil {
			s.in.seq = s.out.seq - 1 // of the one record
			_, err = s.Open(plain, record)
		}
	})
	return sealed, opened, err
}

func rate(each time.Duration, do func()) float64 {
	for began, n := time.Now(), 0; ; n++ {
		if took := time.Since(began); took >= each {
			return float64(n) * MaxPlain / took.Seconds()
		}
		do()
	}
}

// IsFast reports whether this processor has instructions for AES-GCM. Others take ten times
// as long.
func IsFast() bool {
	return cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ || cpu.ARM64.HasAES && cpu.ARM64.HasPMULL || cpu.S390X.HasAESGCM
}
