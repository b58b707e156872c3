// Package decorum holds the words every other package speaks: URL, Origin,
// Response and Error.
//
// A word is a promise. A URL is canonical because only ParseURL and
// URL.Resolve make one; an Origin is whom one robots.txt speaks for; a
// Response is what a server answered; an Error says what was being done, to
// which URL, and of what ErrorKind the failure is. The package decides nothing,
// does no I/O and imports nothing of the module.
package decorum
