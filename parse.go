package decorum

// maxURLBytes is the length of the longest URL, in bytes.
const maxURLBytes = 64 << 10

// Why something is no URL for the crawl.
const (
	errScheme            = textError("scheme is not http, https or ftp")
	errRelative          = textError("relative, and there is no page to resolve it against")
	errTooLong           = textError("longer than 64 KiB")
	errNoHost            = textError("no host")
	errForbiddenHostChar = textError("host has a character that is forbidden")
	errIDNA              = textError("host is no valid international domain name")
	errLongHost          = textError("host is longer than 254 octets")
	errIPv4              = textError("host ends in a number but is no IPv4 address")
	errIPv6              = textError("host in brackets is no IPv6 address")
	errPort              = textError("port is not a number up to 65535")
)

// ParseURL returns the canonical form of s. Two strings name the same page if
// and only if their canonical forms are equal:
//
//  1. s is read as browsers read it (WHATWG URL standard, "basic URL
//     parser"): spaces and control characters around it are dropped, tabs and
//     line ends within it too; a backslash before the query is a slash; any
//     number of slashes, even none, may stand behind the scheme.
//  2. The scheme is http, https or ftp, in lower case (LOC-17, LOC-18).
//  3. User information and fragment are dropped (LOC-17).
//  4. The host is not empty. Its escapes are decoded, and UTS 46,
//     non-transitional, maps it to lower case and Punycode (LOC-07, LOC-17).
//     A final dot is kept: WHATWG tells the two names apart.
//  5. A host whose last label is a number is an IPv4 address in any of its
//     forms (0x7f.1) and is written in four decimal numbers; an IPv6 address
//     is written in brackets, compressed, in lower case hex digits (LOC-09).
//  6. The port is at most 65535; the scheme's own is dropped (LOC-10).
//  7. An empty path is "/". The segments ".", ".." and their spellings with
//     %2e are resolved. Empty segments stay.
//  8. An empty query stays: /a? is not /a.
//  9. A byte that may not stand in a path or query (WHATWG's path and
//     special-query percent-encode sets) is escaped. Text outside ASCII is so
//     escaped as UTF-8, and bytes that are no UTF-8 as they stand (FMT-14).
//  10. Escapes have upper case digits, and unreserved characters (letters,
//     digits, "-", ".", "_", "~") have none (RFC 3986 §6.2.2, MATCH-22). All
//     other escapes stay: %2F is not a slash.
//  11. A percent sign that begins no escape stays as it is. An escape that,
//     decoded, would make it begin one stays, too: %%341 is not %41.
//  12. Neither s nor its canonical form is longer than 64 KiB, and no host
//     longer than the DNS allows.
//
// Rules 1 to 9 are WHATWG's, but for the schemes in 2, what is dropped in 3 and
// the bytes that are no UTF-8 in 9; the others are ours. docs/url-identity.md
// has examples and reasons. An s that is no such URL gets an *Error of ErrorKind
// Invalid. An s that is canonical already is not copied: the URL keeps it in
// memory.
func ParseURL(s string) (URL, error) { return resolve(URL{}, s) }

// Resolve returns the canonical form of ref, a link found on the page u, by
// the rules of ParseURL. A ref that is empty or only a fragment names u.
func (u URL) Resolve(ref string) (URL, error) { return resolve(u, ref) }

// ResolveBytes is Resolve for a link in a buffer. The result does not alias ref.
func (u URL) ResolveBytes(ref []byte) (URL, error) { return resolve(u, ref) }

// byteSeq is what a link may come as. Converting it to a string is free or a copy.
type byteSeq interface{ string | []byte }

// resolve tries the fast path first, which gives the result of the full
// parser or none.
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

// maxShownBytes is how much of a link an error shows.
const maxShownBytes = 256

// invalidURLError is the error about ref.
func invalidURLError(ref string, cause error) error {
	return &Error{Op: "parse", URL: ref[:min(len(ref), maxShownBytes)], Kind: Invalid, Err: cause}
}
