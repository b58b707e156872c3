// Package testfile writes, checks and damages files for tests: temporary files, modes, rotated
// outputs, full disks and losses of power. Only tests import it.
package testfile
