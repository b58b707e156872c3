// Package reporttext formats text about a crawl for people: lines and tables, refusals, parked URLs,
// delays and the rules of a verdict. The reports of a crawl, the forecast of a dry run and decorum
// top use it. Machine-readable output is made elsewhere.
//
// Begin reading at Builder:
//
//	var b reporttext.Builder
//	b.WriteLine("%d pages", n)
//	err := b.PrintTo(os.Stdout)
//
// The package starts no goroutine and has no locks.
package reporttext
