# A program with one tool, which answers no call.
echo '{"tools": [{"name": "price", "description": "the price of a thing"}]}'
cat >/dev/null
