"""How results print and draw themselves: formats, sentences, tables, pictures."""
