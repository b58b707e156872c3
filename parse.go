package decorum

// maxURLBytes is the maximum length of a URL, in bytes.
const maxURLBytes = 64 << 10

// The causes of an Error of kind Invalid.
const (
	errScheme            = textError("scheme is not http, https or ftp")
	errRelative          = textError("relative, without a page to resolve it against")
	errTooLong           = textError("longer than 64 KiB")
	errNoHost            = textError("no host")
	errForbiddenHostChar = textError("host has a character that is forbidden")
	errIDNA              = textError("host is not a valid international domain name")
	errLongHost          = textError("host is longer than 254 octets")
	errIPv4              = textError("host ends in a number but is not an IPv4 address")
	errIPv6              = textError("host in brackets is not an IPv6 address")
	errPort              = textError("port is not a number up to 65535")
)

// ParseURL returns the canonical form of s. Two strings name the same page if
// and only if their canonical forms are equal:
//
//  1. s is parsed as browsers parse it (WHATWG URL standard, "basic URL
//     parser"): spaces and control characters around it and tabs and line ends
//     within it are dropped; a backslash before the query is a slash; any
//     number of slashes, including zero, may follow the scheme.
//  2. The scheme is http, https or ftp, in lower case (LOC-17, LOC-18).
//  3. User information and fragment are dropped (LOC-17).
//  4. The host is not empty. Its escapes are decoded, and UTS 46,
//     non-transitional, maps it to lower case and Punycode (LOC-07, LOC-17).
//     A final dot is kept: to WHATWG, a name with it is another name.
//  5. A host whose last label is a number is an IPv4 address in any of its
//     forms (0x7f.1) and becomes four decimal numbers; an IPv6 address
//     becomes compressed lower case hex digits in brackets (LOC-09).
//  6. The port is at most 65535; the scheme's default port is dropped (LOC-10).
//  7. An empty path is "/". The segments ".", ".." and their spellings with
//     %2e are resolved. Empty segments stay.
//  8. An empty query stays: /a? is not /a.
//  9. A byte that a path or query may not contain (WHATWG's path and
//     special-query percent-encode sets) is escaped. Text outside ASCII is
//     therefore escaped as UTF-8, and invalid UTF-8 byte by byte (FMT-14).
//  10. Escapes have upper case digits. Unreserved characters (letters,
//     digits, "-", ".", "_", "~") are not escaped (RFC 3986 §6.2.2, MATCH-22).
//     All other escapes stay: %2F is not a slash.
//  11. A percent sign without two hex digits behind it stays. An escape stays
//     too if decoding it would turn that percent sign into an escape: %%341 is
//     not %41.
//  12. Neither s nor its canonical form is longer than 64 KiB, and the host is
//     not longer than the DNS allows.
//
// Rules 1 to 9 are WHATWG's, except for the schemes in 2, what is dropped in 3 and
// the invalid UTF-8 in 9; rules 10 to 12 are decorum's own. docs/url-identity.md
// has examples and reasons.
//
// If s breaks a rule, ParseURL returns an *Error of kind Invalid. If s is already
// canonical, it is not copied: the URL shares its memory.
func ParseURL(s string) (URL, error) { return resolve(URL{}, s) }

// Resolve returns the canonical form of ref, a link found on the page u, by the rules and with the
// errors of ParseURL. A ref that is empty or only a fragment resolves to u.
func (u URL) Resolve(ref string) (URL, error) { return resolve(u, ref) }

// ResolveBytes is Resolve for a link in a buffer. The result does not share memory with ref.
func (u URL) ResolveBytes(ref []byte) (URL, error) { return resolve(u, ref) }

// byteSeq is the type of a link. Converting it to a string costs nothing or one copy.
type byteSeq interface{ string | []byte }

// resolve returns the canonical form of ref on base; a zero base means that ref must be absolute. It
// tries the fast path first, whose result, if it has one, equals that of the full parser.
func resolve[T byteSeq](base URL, ref T) (URL, error) {
	if u, ok := resolveFast(base, ref); ok {
		return u, nil
	}
	if len(ref) > maxURLBytes {
		return URL{}, invalidURLError(string(ref[:maxShownBytes]), errTooLong)
	}
	s := string(ref)
	u, err := resolveFull(base, s)
	if err != nil {
		return URL{}, invalidURLError(s, err)
	}
	return u, nil
}

// maxShownBytes limits how much of a link an error shows.
const maxShownBytes = 256

// invalidURLError returns the error of kind Invalid about ref, cut to maxShownBytes.
func invalidURLError(ref string, cause error) error {
	return &Error{Op: "parse", URL: ref[:min(len(ref), maxShownBytes)], Kind: Invalid, Err: cause}
}
