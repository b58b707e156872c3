package frontier

import (
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// IsSortLink reports whether a link on the page referrer to u asks for the list on that page in another order,
// and for nothing else: u differs from the page in its query alone, which has only parameters that sort, as in
// the links at the head of a directory listing. A page of a sorted list, such as /list?sort=price&page=2, and
// a sorted list that another page links to are not sort links, because nothing else may lead to them.
func IsSortLink(referrer string, u decorum.URL) bool {
	list, query, hasQuery := strings.Cut(u.String(), "?")
	if page, _, _ := strings.Cut(referrer, "?"); !hasQuery || page != list {
		return false
	}
	sorts := false
	for param := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(param, "=")
		if sorts = isSortParam(name, value); !sorts {
			return false
		}
	}
	return sorts
}

// isSortParam reports whether a query parameter gives the order of a list. The value must be one that the
// software knows, or name a direction or a common column: dir=photos may name a directory, order=1017 an order
// in a shop, and order=Rodentia an order of animals.
func isSortParam(name, value string) bool {
	switch name {
	case "C": // Apache and nginx: the column
		return len(value) == 1 && strings.Contains("NMSD", value)
	case "O", "N", "M", "S", "D": // Apache: the direction; before version 2, of the column of that name
		return value == "A" || value == "D"
	case "s": // cgit
		return value == "name" || value == "desc" || value == "owner" || value == "idle"
	case "o": // gitweb
		return value == "project" || value == "descr" || value == "owner" || value == "age"
	}
	switch strings.ToLower(name) {
	case "dir", "direction", "sortdir", "sort_dir", "sortorder", "sort_order", "product_list_dir":
		return slices.Contains(sortDirections, strings.ToLower(value))
	case "sort", "sortby", "sort_by", "order", "orderby", "order_by", "product_list_order":
		return hasSortWord(value)
	}
	return false
}

var sortDirections = []string{"asc", "desc", "ascending", "descending"}

// sortColumns are words in the names of columns, and of other orders, by which software sorts lists.
var sortColumns = strings.Fields(`
	added age alphabetical author bestselling changed comments cost count created date default descr description
	downloads featured filename hot id idle lastchange lastmod latest length likes model modified mtime name new
	newest old oldest order owner popular popularity position posted price priority project published rank rating
	recent relevance score size status subject time title top type updated user views votes`)

// maxSortValue is the length of the longest value that names columns, in bytes.
const maxSortValue = 64

// hasSortWord reports whether a word of s is a direction or in sortColumns, and s consists of words alone, as
// price, -date and pd.name:desc do.
func hasSortWord(s string) bool {
	if len(s) > maxSortValue {
		return false
	}
	has := false
	isWordSeparator := func(r rune) bool { return strings.ContainsRune("-_.,:+", r) }
	for word := range strings.FieldsFuncSeq(strings.ToLower(s), isWordSeparator) {
		if strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || 'z' < r }) {
			return false
		}
		has = has || slices.Contains(sortDirections, word) || slices.Contains(sortColumns, word)
	}
	return has
}
