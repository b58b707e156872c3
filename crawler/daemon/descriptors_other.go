//go:build !unix

package daemon

// maxDescriptors returns 0: there is no limit that a process can read.
func maxDescriptors() uint64 { return 0 }
