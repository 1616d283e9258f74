-module(world).
-export([main/0]).
main() ->
    [What] = init:get_plain_arguments(),
    io:format("~p~n", [run(What)]),
    halt().
run("churn") -> lists:sum([length([{I, integer_to_list(I)} || I <- lists:seq(1, 60000)]) || _ <- lists:seq(1, 15)]);
run("large") -> lists:sum([byte_size(binary:copy(<<"x">>, 40 * 1024 * 1024)) || _ <- lists:seq(1, 20)]);
run("touch") -> length([binary:copy(<<"x">>, 2000 + I rem 8) || I <- lists:seq(1, 80000)]);
run(_) -> loop(60000000, 0).
loop(0, Sum) -> Sum;
loop(N, Sum) -> loop(N - 1, (Sum * 3 + N) band 16#ffffff).
