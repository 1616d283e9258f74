local what = arg[1]
local total = 0
if what == "churn" then
  for r = 1, 10 do
    local l = {}
    for i = 1, 40000 do l[i] = { i, "x" .. i } end
    total = total + #l
    l = nil
    collectgarbage()
  end
elseif what == "large" then
  for r = 1, 20 do
    local s = string.rep("x", 40 * 1024 * 1024)
    total = total + #s
    s = nil
    collectgarbage()
  end
elseif what == "touch" then
  local kept = {}
  for i = 1, 80000 do kept[i] = string.rep("x", 2000 + i % 8) .. i end
  total = #kept
else
  local list = {}
  for i = 1, 1000 do list[i] = i end
  for i = 1, 20000000 do total = total + list[i % 1000 + 1] end
end
print(total)
