package ftpfetch

import (
	"errors"
	"net/url"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// Why a URL names no file.
var (
	errUnsupportedScheme = errors.New("only ftp is fetched")
	errInvalidEscape     = errors.New("its path has a percent sign that begins no escape")
	errEscapedSlash      = errors.New("its path has an escaped slash or backslash, which would name another file than robots.txt is asked for")
	errControlCharacter  = errors.New("its path has an escaped control character, which could be taken for a command")
	errDotSegment        = errors.New("its path has an escaped dot segment")
)

// filePath returns the name of the file that u is for, from the root of what the
// server shows to anonymous users. Its segments are decoded one by one: what is
// decoded must not be what divides segments or commands (RFC 1738 §5), for
// robots.txt has been asked about the path as it is written. ftp has no queries:
// a question mark is part of the name.
func filePath(u decorum.URL) (string, error) {
	if u.Origin().Scheme() != "ftp" {
		return "", errUnsupportedScheme
	}
	segments := strings.Split(u.PathAndQuery(), "/")
	for i, s := range segments {
		name, err := url.PathUnescape(s)
		switch {
		case err != nil:
			return "", errInvalidEscape
		case strings.ContainsAny(name, `/\`):
			return "", errEscapedSlash
		case !isSafeInCommand(name):
			return "", errControlCharacter
		case name == "." || name == "..":
			return "", errDotSegment
		}
		segments[i] = name
	}
	return strings.Join(segments, "/"), nil
}

// isSafeInCommand reports whether s can be sent in a command as it is: it has no end of
// line or other control character, and no 0xFF, which begins a command of Telnet
// (RFC 959 §3.1.1, RFC 854).
func isSafeInCommand(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f || c == 0xff {
			return false
		}
	}
	return true
}
