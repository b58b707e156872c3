//go:build !linux

package bolt

// holder says who has the file locked, as far as the system tells.
func holder(string) string { return someone }
