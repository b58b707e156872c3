package decorum

import "strings"

// resolveFast resolves the links that pages are full of: those whose bytes
// stand in the canonical URL as they stand in ref. It only looks, and copies
// at most once. It reports false whenever it is not sure of what the full
// parser says.
func resolveFast[T byteSeq](base URL, ref T) (u URL, ok bool) {
	if len(base.s)+len(ref) > maxURLBytes {
		return URL{}, false
	}
	if path := canonicalOriginLen(base, ref); path > 0 {
		end, ok := scanPathAndQuery(ref, path+1)
		return URL{s: string(ref[:end]), pathStart: uint32(path)}, ok
	}
	if base.IsZero() {
		return URL{}, false
	}
	if len(ref) == 0 || ref[0] == '#' {
		return base, true
	}
	var baseEnd, refStart, end int // of base; of ref
	switch ref[0] {
	case '/':
		if len(ref) > 1 && ref[1] == '/' {
			return URL{}, false
		}
		baseEnd = int(base.pathStart)
		end, ok = scanPathAndQuery(ref, 1)
	case '?':
		baseEnd = base.pathEnd()
		end, ok = scanNormalQuery(ref, 1)
	default:
		baseEnd, refStart = resolveLeadingDotSegments(base, ref)
		end, ok = scanPathAndQuery(ref, refStart)
	}
	if !ok {
		return URL{}, false
	}
	return URL{s: concat(base.s[:baseEnd], ref[refStart:end]), pathStart: base.pathStart}, true
}

// concat returns a and b as one string. If that is short, it is the only copy.
func concat[T byteSeq](a string, b T) string {
	var buf [256]byte
	return string(append(append(buf[:0], a...), b...))
}

// canonicalOriginLen returns where the path begins in ref, if ref begins with a
// canonical origin and a slash, and 0 if not, or if that takes more than a
// look: ports, addresses, Punycode. The origin of base needs none.
func canonicalOriginLen[T byteSeq](base URL, ref T) (path int) {
	if n := int(base.pathStart); n > 0 && len(ref) > n && ref[n] == '/' && string(ref[:n]) == base.s[:n] {
		return n
	}
	host := hostStart(ref)
	if host == 0 {
		return 0
	}
	start := host // of a label
	for i := host; i < len(ref); i++ {
		c := ref[i]
		if inClass(c, inHostname) || c == '-' {
			continue
		}
		if label := ref[start:i]; len(label) >= len("xn--") && string(label[:4]) == "xn--" && !isStablePunycode(label[4:]) {
			return 0
		}
		switch {
		case c == '.':
			start = i + 1
		case c == '/' && ref[start] > '9' && i-host <= maxHostBytes: // no number, not empty
			return i
		default:
			return 0
		}
	}
	return 0
}

// hostStart returns where the host begins in ref, 0 if no canonical scheme
// stands before it.
func hostStart[T byteSeq](ref T) int {
	switch {
	case len(ref) > 8 && string(ref[:8]) == "https://":
		return 8
	case len(ref) > 7 && string(ref[:7]) == "http://":
		return 7
	case len(ref) > 6 && string(ref[:6]) == "ftp://":
		return 6
	}
	return 0
}

// scanPathAndQuery looks at path and query in ref, of which a segment begins at i,
// and returns where they end: at the fragment or the end of ref.
func scanPathAndQuery[T byteSeq](ref T, i int) (end int, ok bool) {
	segment := i
	for ; i < len(ref); i++ {
		c := ref[i]
		if inClass(c, inSegment) {
			continue
		}
		switch {
		case c == '/' && !isDotSegment(ref[segment:i]):
			segment = i + 1
		case c == ':' && segment > 0: // else it may end a scheme
		case c == '%' && isNormalEscape(ref[i:]):
			i += len("2F")
		case c == '?' && !isDotSegment(ref[segment:i]):
			return scanNormalQuery(ref, i+1)
		case c == '#':
			return i, !isDotSegment(ref[segment:i])
		default:
			return 0, false
		}
	}
	return i, !isDotSegment(ref[segment:])
}

// scanNormalQuery is scanPathAndQuery within the query.
func scanNormalQuery[T byteSeq](ref T, i int) (end int, ok bool) {
	for ; i < len(ref); i++ {
		c := ref[i]
		switch {
		case inClass(c, inQuery):
		case c == '%' && isNormalEscape(ref[i:]):
			i += len("2F")
		case c == '#':
			return i, true
		default:
			return 0, false
		}
	}
	return i, true
}

// isDotSegment reports whether segment is "." or "..".
func isDotSegment[T byteSeq](segment T) bool {
	n := len(segment)
	return n == 1 && segment[0] == '.' || n == 2 && segment[0] == '.' && segment[1] == '.'
}

// isNormalEscape reports whether s, which begins with a percent sign, begins
// with an escape that stays as it is.
func isNormalEscape[T byteSeq](s T) bool {
	return len(s) >= len("%2F") && inClass(s[1], hexDigit) && inClass(s[2], hexDigit) &&
		s[1] < 'a' && s[2] < 'a' && !inClass(hexValue(s[1])<<4|hexValue(s[2]), unreserved)
}

// resolveLeadingDotSegments follows the segments "." and ".." that ref begins with. It returns
// how much of base is kept, a directory, and what of ref is to follow it.
func resolveLeadingDotSegments[T byteSeq](base URL, ref T) (baseEnd, refStart int) {
	baseEnd = directoryEnd(base.s, int(base.pathStart), base.pathEnd())
	for {
		switch rest := ref[refStart:]; {
		case len(rest) >= 2 && rest[0] == '.' && rest[1] == '/':
			refStart += len("./")
		case len(rest) >= 3 && rest[0] == '.' && rest[1] == '.' && rest[2] == '/':
			refStart += len("../")
			baseEnd = parentDirectoryEnd(base.s, int(base.pathStart), baseEnd)
		default:
			return baseEnd, refStart
		}
	}
}

// pathEnd returns where u's path ends and its query may begin.
func (u URL) pathEnd() int {
	if i := strings.IndexByte(u.s, '?'); i >= 0 {
		return i
	}
	return len(u.s)
}
