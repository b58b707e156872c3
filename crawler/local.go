package crawler

import (
	"errors"

	"github.com/decorum-crawler/decorum"
)

// A LocalFault is the reason why a visit failed on this machine: it is short of
// something that connections need, or its network is gone. Its Kind is
// decorum.Local. Unlike other errors of that Kind it speaks of every visit that
// the process makes.
type LocalFault struct {
	Why string // what the machine lacks, for people: "no more file descriptors"
	Err error  // the cause
}

// Error returns what the machine lacks, and the cause.
func (f *LocalFault) Error() string {
	if f.Err == nil {
		return f.Why
	}
	return f.Why + ": " + f.Err.Error()
}

// Unwrap lets errors.Is and errors.As see the Kind and the cause.
func (f *LocalFault) Unwrap() []error {
	if f.Err == nil {
		return []error{decorum.Local}
	}
	return []error{decorum.Local, f.Err}
}

// isLocal reports whether v failed on this machine, so that its URL goes back and
// its host is not charged. A request that must not be sent twice and may have been
// sent is in doubt, whoever is to blame.
func isLocal(v *Visit) bool {
	return v.Response == nil && errors.Is(v.Err, decorum.Local) && !errors.Is(v.Err, decorum.InDoubt)
}
