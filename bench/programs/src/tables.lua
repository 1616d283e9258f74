-- Many small tables and strings, made and dropped: each is a block of the C library's allocator.
local total = 0
for round = 1, 40 do
  local list = {}
  for i = 1, 20000 do list[i] = { id = i, name = "item" .. i, at = { i, round } } end
  for i = 1, #list do total = total + list[i].at[1] + #list[i].name end
end
print(total)
